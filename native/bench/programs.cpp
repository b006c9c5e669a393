#include "bench/programs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numbers>

#include "base/random.hpp"
#include "bench/program_kernels.hpp"
#include "os/file.hpp"

namespace nearfar::bench {

namespace {

constexpr double relaxation = 0.8;
constexpr std::size_t max_bytes = std::size_t{1} << 36;

Error wrong(const char* what) {
  return Error::make(Errc::failed_check, "%s", what)
      .try_next("memory or compiler is broken: run it again, then report it");
}

/// The arrays of a program: allocates them, provides Views of them, and frees them.
class Arrays {
public:
  explicit Arrays(const Allocator& allocator) : allocator_(allocator) {}
  ~Arrays() {
    for (void* block : blocks_)
      std::visit([&](const auto& a) { a.release(block); }, allocator_);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  template <class T>
  T* make(std::size_t count) {
    void* block =
        std::visit([&](const auto& a) { return a.allocate(count * sizeof(T)); }, allocator_);
    if (block) blocks_.push_back(block);
    return static_cast<T*>(block);
  }

private:
  const Allocator& allocator_;
  std::vector<void*> blocks_;
};

std::uint64_t mixed(std::uint64_t sum, std::uint64_t word) { return next_mmix(sum ^ word); }

/// Hash of a value, so that the sum over an array depends on its values.
std::uint64_t hash(std::int32_t value) { return Random(static_cast<std::uint64_t>(value)).next(); }

template <class R>
View<std::int32_t, R> view(std::int32_t* data, unsigned number, R& recorder) {
  return {data, std::uint64_t{number + 1} << Recorder::array_shift, recorder};
}
template <class R>
View<double, R> view(double* data, unsigned number, R& recorder) {
  return {data, std::uint64_t{number + 1} << Recorder::array_shift, recorder};
}

/// Runs `compute` and measures its resource usage.
template <class Compute>
ProgramRun timed(const Compute& compute) {
  ProgramRun run;
  const os::UsageMeter meter;
  compute();
  run.usage = meter.since();
  return run;
}

template <class R>
Result<ProgramRun> sort(const ProgramWork& work, Arrays& arrays, R& recorder) {
  const std::size_t n = work.n;
  const bool merges = work.program == Program::merge;
  auto* data = arrays.make<std::int32_t>(n);
  auto* buffer = merges ? arrays.make<std::int32_t>(n) : data;
  if (!data || !buffer)
    return Error::make(Errc::no_space, "no memory for %zu elements", n)
        .try_next("use a smaller --problem-size");
  Random random(work.seed);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    data[i] = static_cast<std::int32_t>(random.next());
    sum += hash(data[i]);
  }
  const View<std::int32_t, R> a = view(data, 0, recorder);
  ProgramRun run = timed([&] {
    if (merges)
      mergesort(a, view(buffer, 1, recorder), 0, n);
    else
      quicksort(a, 0, n);
  });
  if (!std::is_sorted(data, data + n)) return wrong("the array is not sorted");
  for (std::size_t i = 0; i < n; ++i) {
    sum -= hash(data[i]);
    run.checksum = mixed(run.checksum, static_cast<std::uint64_t>(data[i]));
  }
  if (sum != 0) return wrong("the sorted array does not hold what the array held");
  return run;
}

/// Whole numbers small enough that sums are exact, so that a product with a random vector must be
/// right to the bit: (a b) x = a (b x), after Freivalds.
template <class R>
Result<ProgramRun> matmul(const ProgramWork& work, Arrays& arrays, R& recorder) {
  const std::size_t n = work.n;
  double* m[3];
  for (double*& matrix : m)
    if (!(matrix = arrays.make<double>(n * n)))
      return Error::make(Errc::no_space, "no memory for matrices of %zu rows", n)
          .try_next("use a smaller --problem-size");
  Random random(work.seed);
  for (std::size_t i = 0; i < n * n; ++i) {
    m[0][i] = static_cast<double>(random.below(17)) - 8;
    m[1][i] = static_cast<double>(random.below(17)) - 8;
    m[2][i] = 0;
  }
  ProgramRun run = timed([&] {
    multiply(view(m[0], 0, recorder), view(m[1], 1, recorder), view(m[2], 2, recorder), n);
  });
  std::vector<double> x(n), bx(n, 0.0);
  for (double& value : x)
    value = static_cast<double>(random.below(17)) - 8;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      bx[i] += m[1][i * n + j] * x[j];
  for (std::size_t i = 0; i < n; ++i) {
    double abx = 0;
    double cx = 0;
    for (std::size_t j = 0; j < n; ++j) {
      abx += m[0][i * n + j] * bx[j];
      cx += m[2][i * n + j] * x[j];
      run.checksum = mixed(run.checksum, std::bit_cast<std::uint64_t>(m[2][i * n + j]));
    }
    if (abx != cx) return wrong("the product is not that of the matrices");
  }
  return run;
}

/// A shear wave along z in a resting fluid.
void fill_lattice(double* f, std::size_t n) {
  for (std::size_t cell = 0; cell < n * n * n; ++cell) {
    const auto z = static_cast<double>(cell / (n * n));
    const double angle = 2 * std::numbers::pi * z / static_cast<double>(n);
    for (std::size_t q = 0; q < D3Q19::directions; ++q)
      f[cell * D3Q19::directions + q] = equilibrium(q, 1.0, {0.01 * std::sin(angle), 0, 0});
  }
}

/// The wave's amplitude, and the mass of all cells.
std::pair<double, double> wave(const double* f, std::size_t n) {
  double amplitude = 0;
  double mass = 0;
  for (std::size_t cell = 0; cell < n * n * n; ++cell) {
    const auto z = static_cast<double>(cell / (n * n));
    const double angle = 2 * std::numbers::pi * z / static_cast<double>(n);
    for (std::size_t q = 0; q < D3Q19::directions; ++q) {
      const double part = f[cell * D3Q19::directions + q];
      mass += part;
      amplitude += part * D3Q19::velocity[q][0] * std::sin(angle);
    }
  }
  const auto cells = static_cast<double>(n * n * n);
  return {2 * amplitude / cells, mass / cells};
}

/// Mass is conserved, and the wave decays with the viscosity of the relaxation time.
Status check_lattice(const double* f, const ProgramWork& work) {
  const auto [amplitude, mass] = wave(f, work.n);
  if (std::abs(mass - 1) > 1e-9) return wrong("the lattice lost or made mass");
  const double k = 2 * std::numbers::pi / static_cast<double>(work.n);
  const double viscosity = (relaxation - 0.5) / 3;
  const double expected = 0.01 * std::exp(-viscosity * k * k * static_cast<double>(work.steps));
  if (std::abs(amplitude / expected - 1) > 0.02)
    return wrong("the shear wave does not decay as its viscosity says");
  return Done{};
}

template <class R>
Result<ProgramRun> lattice(const ProgramWork& work, Arrays& arrays, R& recorder) {
  const std::size_t cells = work.n * work.n * work.n;
  double* f[2];
  for (double*& grid : f)
    if (!(grid = arrays.make<double>(cells * D3Q19::directions)))
      return Error::make(Errc::no_space, "no memory for %zu cells", cells)
          .try_next("use a smaller --problem-size");
  fill_lattice(f[0], work.n);
  std::fill_n(f[1], cells * D3Q19::directions, 0.0);
  const View<double, R> grids[2] = {view(f[0], 0, recorder), view(f[1], 1, recorder)};
  ProgramRun run = timed([&] {
    for (std::size_t step = 0; step < work.steps; ++step)
      lattice_step(grids[step % 2], grids[1 - step % 2], work.n, relaxation);
  });
  const double* result = f[work.steps % 2];
  if (Status right = check_lattice(result, work); !right) return right.error();
  for (std::size_t i = 0; i < cells * D3Q19::directions; ++i)
    run.checksum = mixed(run.checksum, std::bit_cast<std::uint64_t>(result[i]));
  return run;
}

template <class R>
Result<ProgramRun> run_with(const ProgramWork& work, const Allocator& allocator, R& recorder) {
  const std::size_t least = work.program == Program::lbm ? 16 : 1;
  if (work.n < least || work.steps == 0 || program_bytes(work) > max_bytes)
    return Error::make(Errc::bad_input, "a size of %zu is too small or too large", work.n)
        .try_next("give --problem-size %zu or more, and no more than 64 GiB of arrays", least);
  Arrays arrays(allocator);
  switch (work.program) {
  case Program::quick:
  case Program::merge: return sort(work, arrays, recorder);
  case Program::lbm: return lattice(work, arrays, recorder);
  case Program::matmul: break;
  }
  return matmul(work, arrays, recorder);
}

/// Arrays of a program, in bytes.
std::vector<std::size_t> array_bytes(const ProgramWork& work) {
  const auto n = static_cast<double>(work.n);
  switch (work.program) {
  case Program::quick: return {work.n * sizeof(std::int32_t)};
  case Program::merge: return std::vector<std::size_t>(2, work.n * sizeof(std::int32_t));
  case Program::lbm:
    if (n * n * n > 1e10) return {max_bytes + 1};
    return std::vector<std::size_t>(2,
                                    work.n * work.n * work.n * D3Q19::directions * sizeof(double));
  case Program::matmul: break;
  }
  if (n * n > 1e11) return {max_bytes + 1};
  return std::vector<std::size_t>(3, work.n * work.n * sizeof(double));
}

trace::Header header_of(const ProgramWork& work, const std::vector<cache::Geometry>& levels) {
  constexpr const char* names[] = {"l1", "l2", "llc"};
  trace::Header header;
  header.after = static_cast<trace::After>(levels.size() - 1);
  header.fields = {{"recorder", "instrumented"},
                   {"program", std::string(program_names[static_cast<unsigned>(work.program)])},
                   {"program", std::to_string(work.n)},
                   {"prefetch", "off"},
                   {"not_traced", "everything but the arrays: code, stack, the kernel"},
                   {"not_traced", "instructions are an estimate, 3 for each access"}};
  for (std::size_t i = 0; i < levels.size(); ++i)
    header.fields.emplace_back(names[i], std::to_string(levels[i].size_bytes) + "/" +
                                             std::to_string(levels[i].ways));
  return header;
}

} // namespace

std::size_t program_bytes(const ProgramWork& work) {
  std::size_t sum = 0;
  for (const std::size_t bytes : array_bytes(work))
    sum = bytes > max_bytes ? bytes : sum + bytes;
  return sum;
}

void Recorder::pass(bool write) {
  for (const cache::Traffic& line : passed_) {
    trace::Record record;
    record.line = line.line;
    record.instructions = instructions_;
    record.object = static_cast<std::uint32_t>(line.line >> (array_shift - 6));
    record.thread = thread_;
    record.kind = line.write ? trace::RecordKind::write_back
                  : write    ? trace::RecordKind::store
                             : trace::RecordKind::load;
    writer_.record(record);
  }
  passed_.clear();
}

void Recorder::finish() {
  writer_.totals[trace::Total::instructions] = instructions_;
  constexpr trace::Total misses[] = {trace::Total::l1_misses, trace::Total::l2_misses,
                                     trace::Total::llc_misses};
  for (std::size_t level = 0; level < caches_.levels() && level < 3; ++level) {
    const cache::LevelCounters& counters = caches_.counters(level);
    writer_.totals[misses[level]] = counters.load_misses() + counters.store_misses();
  }
  writer_.totals[trace::Total::writebacks] = caches_.counters(caches_.levels() - 1).writebacks;
}

Result<ProgramRun> run_program(const ProgramWork& work, const Allocator& allocator) {
  NoRecorder no_recorder;
  return run_with(work, allocator, no_recorder);
}

Result<std::uint64_t> record_program(const ProgramWork& work,
                                     const std::vector<cache::Geometry>& levels, const char* path) {
  if (levels.empty() || levels.size() > 3)
    return Error::make(Errc::bad_input, "a trace is taken after one to three levels of caches")
        .try_next("name l1, l2 or llc");
  Result<cache::Hierarchy> caches = cache::Hierarchy::create(levels);
  if (!caches) return caches.error();
  Result<os::File> file = os::create_new(path);
  if (!file) return file.error();
  trace::TraceWriter writer(file->fd(), header_of(work, levels));
  for (const std::size_t bytes : array_bytes(work)) {
    trace::Site site;
    site.kind = trace::SiteKind::heap;
    site.allocations = 1;
    site.bytes = site.peak_bytes = bytes;
    trace::Object object;
    object.site = writer.site(site);
    object.address = std::uint64_t{object.site} << Recorder::array_shift;
    object.bytes = bytes;
    writer.object(object);
  }
  Recorder recorder(std::move(*caches), writer);
  Result<ProgramRun> run = run_with(work, Malloc{}, recorder);
  if (!run) return run.error();
  recorder.finish();
  if (Status written = writer.finish(); !written) return written.error();
  return run->checksum;
}

} // namespace nearfar::bench
