#include "alloc/plan_words.hpp"

#include <cstring>

#include "alloc/tier_options.hpp"

namespace nearfar::alloc {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool parse_build_id(std::string_view text, ObjectName& object) {
  if (text.size() < 8 || text.size() % 2 != 0 || text.size() / 2 > sizeof object.build_id)
    return false;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]);
    const int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    object.build_id[i / 2] = static_cast<unsigned char>(high << 4 | low);
  }
  object.build_id_bytes = static_cast<std::uint8_t>(text.size() / 2);
  return true;
}

/// OBJECT+0xOFFSET.
bool parse_frame(std::string_view text, SiteFrame& frame) {
  const std::size_t plus = text.rfind('+');
  if (plus == text.npos) return false;
  std::string_view offset = text;
  offset.remove_prefix(plus + 1);
  return parse_hex(offset, frame.offset) && parse_object(text.substr(0, plus), frame.object);
}

} // namespace

std::string_view next_word(std::string_view& rest) {
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t'))
    rest.remove_prefix(1);
  std::size_t length = 0;
  while (length < rest.size() && rest[length] != ' ' && rest[length] != '\t')
    ++length;
  const std::string_view word = rest.substr(0, length);
  rest.remove_prefix(length);
  return word;
}

std::string_view next_line(std::string_view& rest) {
  std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : line.size());
  line = line.substr(0, line.find('#'));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
    line.remove_suffix(1);
  return line;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool parse_hex(std::string_view text, std::uint64_t& value) {
  value = 0;
  if (!take_prefix(text, "0x") || text.empty() || text.size() > 16) return false;
  for (const char c : text) {
    if (hex_digit(c) < 0) return false;
    value = value << 4 | static_cast<std::uint64_t>(hex_digit(c));
  }
  return true;
}

bool parse_object(std::string_view text, ObjectName& object) {
  if (!take_prefix(text, "name:")) return parse_build_id(text, object);
  if (text.size() >= sizeof object.name) return false;
  std::memcpy(object.name, text.data(), text.size());
  return true;
}

bool parse_frames(std::string_view text, SiteFrame (&frames)[longest_chain], std::size_t& count) {
  count = 0;
  if (text.ends_with('<')) return false;
  for (; !text.empty() && count < longest_chain; ++count) {
    const std::string_view one = text.substr(0, text.find('<'));
    text.remove_prefix(one.size() < text.size() ? one.size() + 1 : one.size());
    if (!parse_frame(one, frames[count])) return false;
  }
  return text.empty() && count > 0;
}

bool parse_size_range(std::string_view text, std::uint64_t& low, std::uint64_t& high) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos || text.size() == 2) return false;
  const std::string_view first = text.substr(0, dots);
  std::string_view last = text;
  last.remove_prefix(dots + 2);
  if (!first.empty() && !parse_size(first, low)) return false;
  if (!last.empty() && !parse_size(last, high)) return false;
  return low <= high;
}

bool parse_ratio(std::string_view text, double& ratio) {
  double scale = 1;
  bool point = false;
  bool digits = false;
  ratio = 0;
  if (text.empty() || text.size() > 11) return false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      ratio = ratio * 10 + (c - '0');
      digits = true;
      if (point) scale *= 10;
    } else {
      return false;
    }
  }
  ratio /= scale;
  return digits && ratio <= 1;
}

} // namespace nearfar::alloc
