#include "perf/decompressor.hpp"

#include <linux/perf_event.h>
#include <zstd.h>

namespace nearfar::perf {

namespace {

constexpr std::size_t largest_record = 1u << 16;
constexpr std::size_t step_bytes = 1u << 17;

} // namespace

void Decompressor::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

void Decompressor::feed(ByteSpan part) {
  part_.assign(part.begin(), part.end());
  used_ = 0;
}

Result<ByteSpan> Decompressor::record() {
  for (;;) {
    const ByteSpan waiting = ByteSpan(plain_).subspan(taken_, ready_ - taken_);
    Fields fields(waiting);
    const auto header = fields.read<perf_event_header>();
    if (fields.ok() && header.size < sizeof header)
      return Error::make(Errc::bad_input, "a compressed record has size %u", header.size);
    if (fields.ok() && header.size <= waiting.size()) {
      taken_ += header.size;
      return waiting.first(header.size);
    }
    Result<bool> more = expand();
    if (!more) return more.error();
    if (!*more) return ByteSpan();
  }
}

Result<bool> Decompressor::expand() {
  if (used_ == part_.size() && !more_) return false;
  if (context_ == nullptr) context_.reset(ZSTD_createDCtx());
  if (context_ == nullptr) return Error::make(Errc::no_space, "no memory to decompress records");
  plain_.resize(largest_record + step_bytes);
  std::memmove(plain_.data(), plain_.data() + taken_, ready_ - taken_);
  ready_ -= taken_;
  taken_ = 0;
  ZSTD_inBuffer in{part_.data(), part_.size(), used_};
  ZSTD_outBuffer out{plain_.data(), plain_.size(), ready_};
  const std::size_t result = ZSTD_decompressStream(context_.get(), &out, &in);
  if (ZSTD_isError(result) != 0)
    return Error::make(Errc::bad_input, "compressed records cannot be decompressed: %s",
                       ZSTD_getErrorName(result));
  used_ = in.pos;
  more_ = out.pos == out.size;
  ready_ = out.pos;
  return true;
}

} // namespace nearfar::perf
