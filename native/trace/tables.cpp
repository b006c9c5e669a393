#include "trace/tables.hpp"

#include <bit>
#include <charconv>
#include <cstring>

namespace nearfar::trace {

namespace {

constexpr unsigned max_line_bytes = 4096;
constexpr std::uint64_t max_threads = 1u << 16;
constexpr std::uint64_t max_frames = 256;

bool own_field(const std::string& key, const std::string& value, Header& header, unsigned& seen) {
  if (key == "line_bytes") {
    const char* end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, header.line_bytes);
    ++seen;
    return parsed.ec == std::errc{} && parsed.ptr == end &&
           std::has_single_bit(header.line_bytes) && header.line_bytes <= max_line_bytes;
  }
  for (unsigned i = 0; i < std::size(after_names); ++i)
    if (value == after_names[i]) {
      header.after = static_cast<After>(i);
      ++seen;
      return true;
    }
  return false;
}

bool decode_module(Cursor& payload, Tables& tables) {
  Module module;
  module.path = payload.text();
  module.build_id = payload.text();
  module.process = static_cast<std::uint32_t>(payload.number());
  module.base = payload.number();
  module.bytes = payload.number();
  tables.modules.push_back(std::move(module));
  return true;
}

bool decode_site(Cursor& payload, Tables& tables) {
  Site site;
  const std::uint64_t kind = payload.number();
  const std::uint64_t frames = payload.number();
  if (kind >= site_kinds || frames > max_frames) return false;
  site.kind = static_cast<SiteKind>(kind);
  for (std::uint64_t i = 0; i < frames; ++i) {
    const std::uint64_t module = payload.number();
    if (module > tables.modules.size()) return false;
    site.frames.push_back({static_cast<std::int32_t>(module) - 1, payload.number()});
  }
  tables.sites.push_back(std::move(site));
  return true;
}

bool decode_object(Cursor& payload, const Object& before, Tables& tables) {
  Object object;
  const std::uint64_t site = payload.number();
  if (site >= tables.sites.size()) return false;
  object.site = static_cast<std::uint32_t>(site);
  object.address = payload.difference(before.address);
  object.bytes = payload.difference(before.bytes);
  object.born_record = payload.difference(before.born_record);
  object.born_instruction = payload.difference(before.born_instruction);
  tables.objects.push_back(object);
  return true;
}

bool decode_death(Cursor& payload, Death& death, Tables& tables) {
  const std::uint64_t object = payload.difference(death.object);
  if (object == 0 || object >= tables.objects.size()) return false;
  death.object = static_cast<std::uint32_t>(object);
  death.record = payload.difference(death.record);
  death.instruction = payload.difference(death.instruction);
  tables.objects[object].died_record = death.record;
  tables.objects[object].died_instruction = death.instruction;
  return true;
}

bool decode_site_totals(Cursor& payload, Tables& tables) {
  const std::uint64_t number = payload.number();
  if (number >= tables.sites.size()) return false;
  Site& site = tables.sites[number];
  site.allocations = payload.number();
  site.bytes = payload.number();
  site.peak_bytes = payload.number();
  return true;
}

/// Number of entries of a table whose entries are numbered consecutively.
std::uint64_t entries(BlockKind kind, const Tables& tables, std::uint64_t otherwise) {
  switch (kind) {
  case BlockKind::modules: return tables.modules.size();
  case BlockKind::sites: return tables.sites.size();
  case BlockKind::objects: return tables.objects.size();
  case BlockKind::threads: return tables.threads.size();
  default: return otherwise;
  }
}

bool decode_entry(BlockKind kind, Cursor& payload, Object& before, Death& death, Tables& tables) {
  switch (kind) {
  case BlockKind::modules: return decode_module(payload, tables);
  case BlockKind::sites: return decode_site(payload, tables);
  case BlockKind::objects:
    if (!decode_object(payload, before, tables)) return false;
    before = tables.objects.back();
    return true;
  case BlockKind::deaths: return decode_death(payload, death, tables);
  case BlockKind::threads:
    tables.threads.push_back(static_cast<std::uint32_t>(payload.number()));
    return tables.threads.size() <= max_threads;
  case BlockKind::site_totals: return decode_site_totals(payload, tables);
  case BlockKind::exit_code:
    tables.exit_code = static_cast<std::uint32_t>(payload.number());
    return true;
  default: return false;
  }
}

} // namespace

Bytes encode_header(const Header& header) {
  Bytes out;
  out.text("line_bytes");
  out.text(std::to_string(header.line_bytes));
  out.text("after");
  out.text(std::string(name_of(header.after)));
  for (const auto& [key, value] : header.fields) {
    out.text(key);
    out.text(value);
  }
  return out;
}

bool decode_header(Cursor fields, Header& header) {
  unsigned seen = 0;
  while (fields.left() > 0) {
    std::string key = fields.text();
    std::string value = fields.text();
    if (fields.failed()) return false;
    if (key == "line_bytes" || key == "after") {
      if (!own_field(key, value, header, seen)) return false;
    } else {
      header.fields.emplace_back(std::move(key), std::move(value));
    }
  }
  return seen == 2;
}

void encode(Bytes& out, const Module& module) {
  out.text(module.path);
  out.text(module.build_id);
  out.number(module.process);
  out.number(module.base);
  out.number(module.bytes);
}

void encode(Bytes& out, const Site& site) {
  out.number(static_cast<std::uint64_t>(site.kind));
  out.number(site.frames.size());
  for (const Frame& frame : site.frames) {
    out.number(static_cast<std::uint64_t>(frame.module + 1));
    out.number(frame.offset);
  }
}

void encode(Bytes& out, const Object& object, const Object& before) {
  out.number(object.site);
  out.difference(object.address, before.address);
  out.difference(object.bytes, before.bytes);
  out.difference(object.born_record, before.born_record);
  out.difference(object.born_instruction, before.born_instruction);
}

void encode_site_totals(Bytes& out, std::uint32_t number, const Site& site) {
  out.number(number);
  out.number(site.allocations);
  out.number(site.bytes);
  out.number(site.peak_bytes);
}

void encode(Bytes& out, const Death& death, const Death& before) {
  out.difference(death.object, before.object);
  out.difference(death.record, before.record);
  out.difference(death.instruction, before.instruction);
}

bool decode_table(BlockKind kind, Cursor payload, std::uint32_t count, std::uint64_t first,
                  Tables& tables) {
  if (first != entries(kind, tables, first)) return false;
  Object before;
  Death death;
  for (std::uint32_t i = 0; i < count; ++i)
    if (!decode_entry(kind, payload, before, death, tables) || payload.failed()) return false;
  return payload.left() == 0;
}

} // namespace nearfar::trace
