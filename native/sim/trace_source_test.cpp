#include "sim/trace_source.hpp"

#include <cstdio>
#include <doctest/doctest.h>
#include <string>

#include "trace/writer.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

trace::Record load(std::uint64_t line, std::uint64_t instructions, std::uint32_t object,
                   std::uint32_t depends = 0) {
  return {line, 0x1000, instructions, object, depends, 0, trace::RecordKind::load};
}

/// A trace of two objects of two sites; its path.
std::string written() {
  std::string path = "/tmp/nearfar-trace-source-XXXXXX";
  const int fd = mkstemp(path.data());
  REQUIRE(fd >= 0);
  trace::TraceWriter writer(fd, trace::Header{});
  const std::uint32_t module = writer.module({"/usr/bin/sorted", "abcdef0123", 0, 0, 4096});
  writer.thread(0);
  for (const std::uint64_t offset : {0x10u, 0x20u}) {
    trace::Site site;
    site.kind = trace::SiteKind::heap;
    site.frames = {{static_cast<std::int32_t>(module), offset}};
    trace::Object object;
    object.site = writer.site(site);
    object.address = offset << 20;
    object.bytes = offset * 64;
    writer.object(object);
  }
  writer.record(load(0x10u << 14, 100, 1));
  writer.record(load(0x20u << 14, 150, 2, 1));
  writer.record({0x10u << 14, 0, 150, 1, 0, 0, trace::RecordKind::write_back});
  writer.totals[trace::Total::instructions] = 350;
  REQUIRE(writer.finish());
  std::fclose(fdopen(fd, "w"));
  return path;
}

std::vector<Request> read(const std::string& path, const std::vector<ObjectRule>& rules) {
  Result<TraceSource> source = TraceSource::open(path.c_str(), 500, rules);
  REQUIRE_MESSAGE(source, source.error().what);
  std::vector<Request> requests(10);
  Result<std::size_t> got = source->fill(requests);
  REQUIRE(got);
  requests.resize(*got);
  return requests;
}

} // namespace

TEST_CASE("a trace is a stream of requests") {
  const std::string path = written();
  const std::vector<Request> r = read(path, {});
  std::remove(path.c_str());
  REQUIRE(r.size() == 3);
  CHECK(r[0].address == std::uint64_t{0x10} << 20);
  CHECK(r[0].gap == 100 * 500);
  CHECK(r[1].gap == 50 * 500);
  CHECK(r[1].depends == 1);
  CHECK(!r[1].write);
  CHECK(r[2].write);
  CHECK(r[2].gap == 0);
  CHECK(r[0].object == no_object);
}

TEST_CASE("instructions after the last record count at the end") {
  const std::string path = written();
  Result<TraceSource> source = TraceSource::open(path.c_str(), 500, {});
  REQUIRE(source);
  std::vector<Request> requests(10);
  while (*source->fill(requests) > 0) {
  }
  CHECK(source->tail() == 200 * 500);
  std::remove(path.c_str());
}

TEST_CASE("the first rule that matches says where an object goes") {
  const std::string path = written();
  ObjectRule by_site;
  by_site.frames = {{"abcdef", 0x20}};
  by_site.near = true;
  std::vector<Request> r = read(path, {by_site});
  CHECK(r[0].object == object_anywhere);
  CHECK(r[1].object == object_near);
  by_site.frames = {{"name:sorted", 0x20}};
  CHECK(read(path, {by_site})[1].object == object_near);
  by_site.frames = {{"name:other", 0x20}};
  CHECK(read(path, {by_site})[1].object == object_anywhere);
  ObjectRule small;
  small.max_bytes = 0x10 * 64;
  r = read(path, {small});
  CHECK(r[0].object == object_far);
  CHECK(r[1].object == object_anywhere);
  ObjectRule numbered;
  numbered.object = 2;
  numbered.near = true;
  CHECK(read(path, {numbered, small})[1].object == object_near);
  std::remove(path.c_str());
}

TEST_CASE("a file that is not a trace is refused") {
  CHECK(!TraceSource::open("/dev/null", 500, {}));
  CHECK(!TraceSource::open("/nonexistent/trace", 500, {}));
}
