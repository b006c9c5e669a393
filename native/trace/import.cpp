#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "os/stream.hpp"
#include "trace/block_file.hpp"
#include "trace/champsim.hpp"
#include "trace/interchange.hpp"
#include "trace/writer.hpp"

namespace nearfar::trace {

namespace {

constexpr std::uint64_t line_bytes = 64;
constexpr std::uint64_t max_access_bytes = 4096;
constexpr const char* names[] = {"ramulator", "dramsim3", "dramsys", "champsim"};

class Importer {
public:
  explicit Importer(int fd, Form form) : writer_(fd, header(form)) { writer_.thread(0); }

  void access(std::uint64_t address, RecordKind kind, std::uint64_t instruction,
              std::uint64_t code = 0) {
    const bool write = kind != RecordKind::load;
    ++(write ? done_.writes : done_.reads);
    ++writer_.totals[write ? Total::stores : Total::loads];
    writer_.totals[Total::instructions] = instruction;
    Record record;
    record.line = address / line_bytes;
    record.kind = kind;
    record.code = code;
    record.instructions = instruction;
    writer_.record(record);
  }
  Result<Exchanged> finish() {
    if (Status finished = writer_.finish(); !finished) return finished.error();
    return done_;
  }
  bool failed() const { return writer_.failed() != 0; }
  std::uint64_t accesses() const { return done_.reads + done_.writes; }

private:
  static Header header(Form form) {
    Header header{64,
                  After::llc,
                  {{"recorder", "import"},
                   {"program", std::string("a trace of ") + names[static_cast<unsigned>(form)]},
                   {"not_traced", "caches: the lines of the other trace are taken as they are"}}};
    if (form != Form::champsim) header.fields.emplace_back("addresses", "physical");
    return header;
  }

  TraceWriter writer_;
  Exchanged done_;
};

/// The next word as a number of this base; false if there is none, or the word has other
/// characters.
bool number(char*& at, int base, std::uint64_t& value) {
  char* end = nullptr;
  while (*at == ' ' || *at == '\t')
    ++at;
  if (*at == '-' || *at == '+') return false;
  value = std::strtoull(at, &end, base);
  const bool whole = end != at && (*end == '\0' || std::strchr(" \t\r\n", *end) != nullptr);
  at = end;
  return whole;
}

/// The next word is `word` and what follows is a blank or nothing.
bool word(char*& at, const char* wanted) {
  while (*at == ' ' || *at == '\t')
    ++at;
  const std::size_t bytes = std::strlen(wanted);
  if (std::strncmp(at, wanted, bytes) != 0 ||
      (at[bytes] != '\0' && std::strchr(" \t\r\n", at[bytes]) == nullptr))
    return false;
  at += bytes;
  return true;
}
bool at_end(const char* at) { return at[std::strspn(at, " \t\r\n")] == '\0'; }

/// One line; false if it is none of this form. `instruction` goes on.
bool ramulator_line(char* at, Importer& importer, std::uint64_t& instruction) {
  std::uint64_t first = 0, second = 0;
  for (const auto& [name, kind] :
       {std::pair{"LD", RecordKind::load}, {"ST", RecordKind::write_back}})
    if (word(at, name)) {
      if (!number(at, 0, first) || !at_end(at)) return false;
      importer.access(first, kind, ++instruction);
      return true;
    }
  if (!number(at, 0, first)) return false;
  for (const auto& [name, kind] : {std::pair{"R", RecordKind::load}, {"W", RecordKind::write_back}})
    if (word(at, name)) {
      importer.access(first, kind, ++instruction);
      return at_end(at);
    }
  if (!number(at, 10, second)) return false;
  instruction += first + 1;
  importer.access(second, RecordKind::load, instruction);
  if (at_end(at)) return true;
  if (!number(at, 10, second) || !at_end(at)) return false;
  importer.access(second, RecordKind::write_back, instruction);
  return true;
}

bool dramsim_line(char* at, Importer& importer) {
  std::uint64_t address = 0, cycle = 0;
  if (!number(at, 16, address)) return false;
  const bool write = word(at, "WRITE");
  if (!write && !word(at, "READ")) return false;
  if (!number(at, 10, cycle) || !at_end(at)) return false;
  importer.access(address, write ? RecordKind::write_back : RecordKind::load, cycle);
  return true;
}

bool dramsys_line(char* at, Importer& importer) {
  std::uint64_t cycle = 0, bytes = line_bytes, address = 0;
  char* colon = std::strchr(at, ':');
  if (colon == nullptr) return false;
  *colon = ' ';
  if (!number(at, 10, cycle)) return false;
  at += std::strspn(at, " \t");
  if (*at == '(') {
    char* end = std::strchr(++at, ')');
    if (end == nullptr) return false;
    *end = ' ';
    if (!number(at, 10, bytes) || bytes == 0 || bytes > max_access_bytes) return false;
  }
  const bool write = word(at, "write");
  if ((!write && !word(at, "read")) || !number(at, 16, address)) return false;
  at += std::strspn(at, " \t");
  if (write) at += std::strspn(at, "0123456789abcdefABCDEFx");
  const std::uint64_t last = (address + bytes - 1) / line_bytes;
  for (std::uint64_t line = address / line_bytes; line <= last; ++line)
    importer.access(line * line_bytes, write ? RecordKind::write_back : RecordKind::load, cycle);
  return at_end(at);
}

/// One line of a form of text; false if it is none.
bool text_line(Form form, char* at, Importer& importer, std::uint64_t& instruction) {
  switch (form) {
  case Form::ramulator: return ramulator_line(at, importer, instruction);
  case Form::dramsim3: return dramsim_line(at, importer);
  case Form::dramsys: return dramsys_line(at, importer);
  case Form::champsim: break;
  }
  return false;
}

/// A line of text, ended by a zero byte; only the start of a comment is kept.
struct Line {
  char text[256];
  /// It has a zero byte, or is longer than a line of any form.
  bool damaged = false;
};

/// The next line; false at the end of the file.
bool read_line(std::FILE* file, Line& line) {
  std::size_t used = 0;
  int next = 0;
  line.damaged = false;
  while (next != '\n' && (next = ::getc_unlocked(file)) != EOF) {
    const bool room = used + 1 < sizeof line.text;
    if (room) line.text[used++] = static_cast<char>(next);
    if (next == '\0' || (!room && line.text[0] != '#')) {
      line.damaged = true;
      break;
    }
  }
  line.text[used] = '\0';
  return used != 0;
}

Status read_lines(std::FILE* file, const char* name, Form form, Importer& importer) {
  Line line;
  std::uint64_t instruction = 0;
  for (unsigned long number = 1; read_line(file, line); ++number) {
    if (!line.damaged && (at_end(line.text) || line.text[0] == '#')) continue;
    const bool good = !line.damaged && text_line(form, line.text, importer, instruction);
    if (!good)
      return Error::make(Errc::bad_input, "'%s' line %lu is not a line of a %s trace", name, number,
                         names[static_cast<unsigned>(form)])
          .try_next("name its form with --from; docs/how-to/trace.md lists the forms");
    if (importer.failed()) break;
  }
  return Done{};
}

bool is_zero(const ChampsimInstruction& one) {
  constexpr ChampsimInstruction zero = {};
  return std::memcmp(&one, &zero, sizeof one) == 0;
}

Status read_instructions(std::FILE* file, const char* name, Importer& importer) {
  ChampsimInstruction one;
  std::uint64_t instruction = 0;
  std::size_t got = 0;
  while ((got = std::fread(&one, 1, sizeof one, file)) == sizeof one && !importer.failed()) {
    // No such instruction: the file is something else, or a part of it was never written.
    if (one.is_branch > 1 || one.branch_taken > 1 || is_zero(one)) {
      got = 1;
      break;
    }
    ++instruction;
    for (const std::uint64_t address : one.loads)
      if (address != 0) importer.access(address, RecordKind::load, instruction, one.code);
    for (const std::uint64_t address : one.stores)
      if (address != 0) importer.access(address, RecordKind::store, instruction, one.code);
  }
  if (got == 0 || got == sizeof one) return Done{};
  return Error::make(Errc::bad_input, "'%s' is not a complete champsim trace: instruction %llu",
                     name, static_cast<unsigned long long>(instruction))
      .try_next("unpack it first (xz -d); an instruction has 64 bytes");
}

} // namespace

Result<Exchanged> import_trace(const char* path, int fd, Form form) {
  Result<os::Stream> file = os::open_stream(path);
  if (!file) return file.error();
  Importer importer(fd, form);
  const Status read = form == Form::champsim ? read_instructions(file->get(), path, importer)
                                             : read_lines(file->get(), path, form, importer);
  if (!read) return read.error();
  if (importer.accesses() == 0)
    return Error::make(Errc::bad_input, "'%s' is not a %s trace: it has no accesses", path,
                       names[static_cast<unsigned>(form)])
        .try_next("name its form with --from; docs/how-to/trace.md lists the forms");
  return importer.finish();
}

} // namespace nearfar::trace
