#include "trace/records_block.hpp"

#include <bit>
#include <limits>

namespace nearfar::trace {

RecordsCoder::RecordsCoder(unsigned line_bytes)
    : line_shift_(static_cast<unsigned>(std::countr_zero(line_bytes))) {}

/// The record's context, from the head or from the column of codes.
std::uint32_t RecordsCoder::context_of(const Record& record, const ThreadState& state,
                                       std::uint8_t& head) {
  const std::uint32_t expected = prediction_.expected_context(state, record.kind);
  if (prediction_.context(expected).code == record.code) {
    head |= code_expected;
    return expected;
  }
  Bytes& column = columns_[codes];
  if (record.code == 0) {
    column.number(1);
    return 0;
  }
  Numbered& recent = recent_[(record.code ^ record.code >> 10) % recent_.size()];
  if (recent.code != record.code) {
    recent.code = record.code;
    recent.number = numbers_.try_emplace(record.code, prediction_.contexts()).first->second;
  }
  if (recent.number < prediction_.contexts()) {
    column.number(std::uint64_t{recent.number} + 1);
    return recent.number;
  }
  column.number(0);
  column.difference(record.code, prediction_.last_new_code);
  return prediction_.add(record.code);
}

void RecordsCoder::add(const Record& record, const std::vector<Object>& known) {
  auto head = static_cast<std::uint8_t>(record.kind);
  const bool changed = record.thread != prediction_.thread;
  if (changed || record.depends != 0) {
    head |= has_extras;
    columns_[extras].number(std::uint64_t{record.depends} << 1 | changed);
    if (changed) columns_[extras].number(record.thread);
    prediction_.thread = record.thread;
  }
  ThreadState& state = prediction_.of_thread(record.thread);
  const std::uint32_t number = context_of(record, state, head);
  Context& context = prediction_.context(number);
  const bool same = record.object == context.object;
  if (same)
    head |= object_expected;
  else
    columns_[objects].difference(record.object, context.object);
  const Object& object = known[record.object];
  if (record.line == expected_line(context, same, object, line_shift_))
    head |= line_expected;
  else
    columns_[lines].difference(record.line, line_base(context, same, object, line_shift_));
  const std::uint64_t gap = record.instructions - state.instructions;
  if (gap == context.gap)
    head |= gap_expected;
  else
    columns_[gaps].number(to_unsigned(gap));
  columns_[heads].byte(head);
  state.instructions = record.instructions;
  context.update(record, gap);
  prediction_.follow(state, number);
  ++count_;
}

Bytes RecordsCoder::finish(const Totals& totals) {
  Bytes out;
  out.number(total_count);
  for (const std::uint64_t total : totals.of)
    out.number(total);
  for (Bytes& column : columns_) {
    out.nest(column);
    column.clear();
  }
  prediction_.clear();
  numbers_.clear();
  recent_.fill({});
  count_ = 0;
  return out;
}

namespace {

/// The other side of RecordsCoder::add().
class Decoder {
public:
  Decoder(unsigned line_bytes, const std::vector<Object>& known, std::size_t threads)
      : line_shift_(static_cast<unsigned>(std::countr_zero(line_bytes))), known_(known),
        threads_(threads) {}

  bool totals(Cursor& payload, Totals& totals) {
    const std::uint64_t count = payload.number();
    for (std::uint64_t i = 0; i < count && !payload.failed(); ++i) {
      const std::uint64_t total = payload.number();
      if (i < total_count) totals.of[i] = total;
    }
    return !payload.failed();
  }
  bool columns(Cursor& payload) {
    for (Cursor& column : columns_)
      column = payload.nested();
    return !payload.failed() && payload.left() == 0;
  }

  bool next(Record& record) {
    const std::uint8_t head = columns_[heads].byte();
    if ((head & kind_bits) >= kinds) return false;
    record.kind = static_cast<RecordKind>(head & kind_bits);
    record.depends = 0;
    if ((head & has_extras) != 0 && !extra(record)) return false;
    record.thread = prediction_.thread;
    if (record.thread >= threads_) return false;
    ThreadState& state = prediction_.of_thread(record.thread);
    std::uint32_t number = 0;
    if (!context(head, state, record, number)) return false;
    Context& context = prediction_.context(number);
    record.code = context.code;
    const bool same = (head & object_expected) != 0;
    const std::uint64_t object =
        same ? context.object : columns_[objects].difference(context.object);
    if (object >= known_.size()) return false;
    record.object = static_cast<std::uint32_t>(object);
    place(head, same, context, record);
    const std::uint64_t gap =
        (head & gap_expected) != 0 ? context.gap : to_signed(columns_[gaps].number());
    record.instructions = state.instructions += gap;
    context.update(record, gap);
    prediction_.follow(state, number);
    return true;
  }

  /// Whether the columns had all required values, and no others.
  bool exact() const {
    for (const Cursor& column : columns_)
      if (column.failed() || column.left() > 0) return false;
    return true;
  }

private:
  bool extra(Record& record) {
    const std::uint64_t coded = columns_[extras].number();
    if (coded >> 1 > std::numeric_limits<std::uint32_t>::max()) return false;
    record.depends = static_cast<std::uint32_t>(coded >> 1);
    if ((coded & 1) == 0) return true;
    const std::uint64_t thread = columns_[extras].number();
    prediction_.thread = static_cast<std::uint16_t>(thread);
    return thread < threads_;
  }
  bool context(std::uint8_t head, const ThreadState& state, const Record& record,
               std::uint32_t& number) {
    if ((head & code_expected) != 0) {
      number = prediction_.expected_context(state, record.kind);
      return true;
    }
    const std::uint64_t context = columns_[codes].number();
    if (context > prediction_.contexts()) return false;
    number = context == 0 ? prediction_.add(columns_[codes].difference(prediction_.last_new_code))
                          : static_cast<std::uint32_t>(context - 1);
    return true;
  }
  void place(std::uint8_t head, bool same, const Context& context, Record& record) {
    const Object& object = known_[record.object];
    record.line = (head & line_expected) != 0
                      ? expected_line(context, same, object, line_shift_)
                      : columns_[lines].difference(line_base(context, same, object, line_shift_));
  }

  unsigned line_shift_;
  const std::vector<Object>& known_;
  std::size_t threads_;
  Prediction prediction_;
  Cursor columns_[trace::columns];
};

} // namespace

bool decode_records(Cursor payload, std::uint32_t count, unsigned line_bytes,
                    const std::vector<Object>& known, std::size_t threads,
                    std::vector<Record>& records, Totals& totals) {
  Decoder decoder(line_bytes, known, threads);
  if (!decoder.totals(payload, totals) || !decoder.columns(payload)) return false;
  records.resize(count);
  for (Record& record : records)
    if (!decoder.next(record)) return false;
  return decoder.exact();
}

} // namespace nearfar::trace
