#include "sample/stalled_access.hpp"

#include <Zydis/Zydis.h>
#include <algorithm>
#include <vector>

namespace nearfar::sample {

namespace {

struct Instruction {
  std::size_t at;
  ZydisDecodedInstruction decoded;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

  std::size_t end() const { return at + decoded.length; }
};

const ZydisDecoder& decoder() {
  static const ZydisDecoder made = [] {
    ZydisDecoder one;
    ZydisDecoderInit(&one, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return one;
  }();
  return made;
}

using Code = std::span<const std::uint8_t>;

bool decode(Code code, std::size_t at, Instruction& instruction) {
  instruction.at = at;
  return at < code.size() &&
         ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code.data() + at, code.size() - at,
                                             &instruction.decoded, instruction.operands));
}

/// The instructions that end at `at`, decoded from the start that agrees with most others.
std::vector<Instruction> instructions_before(Code code, std::size_t at) {
  constexpr std::size_t first_tried = 32; // far enough to be aligned before `at` in most cases
  const std::size_t begin = at > code_before ? at - code_before : 0;
  std::vector<unsigned> votes(at + 1, 0); // by the place of the last instruction
  std::vector<std::size_t> lengths(at + 1, 0);
  std::size_t reaching = at;
  for (std::size_t from = begin; from + 1 < at && from < begin + first_tried; ++from) {
    std::size_t place = from;
    std::size_t last = from;
    ZydisDecodedInstruction one;
    while (place < at) {
      if (lengths[place] == 0)
        lengths[place] = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
                             &decoder(), nullptr, code.data() + place, code.size() - place, &one))
                             ? one.length
                             : 1;
      last = place;
      place += lengths[place];
    }
    if (place != at) continue;
    ++votes[last];
    if (reaching == at || votes[last] > 1) reaching = from;
  }
  std::vector<Instruction> found;
  Instruction instruction;
  for (std::size_t place = reaching; place < at; place = instruction.end()) {
    if (!decode(code, place, instruction)) {
      found.clear(); // data between functions
      instruction.at = place;
      instruction.decoded.length = 1;
      continue;
    }
    found.push_back(instruction);
  }
  return found;
}

/// The number of a general register, from the name of any part of it.
std::int8_t number_of(ZydisRegister name) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
  if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) return StalledAccess::none;
  return static_cast<std::int8_t>(ZydisRegisterGetId(whole));
}

/// Instructions whose memory operand is not an access of data.
bool has_no_data(ZydisMnemonic what) {
  switch (what) {
  case ZYDIS_MNEMONIC_LEA:
  case ZYDIS_MNEMONIC_NOP:
  case ZYDIS_MNEMONIC_PREFETCHNTA:
  case ZYDIS_MNEMONIC_PREFETCHT0:
  case ZYDIS_MNEMONIC_PREFETCHT1:
  case ZYDIS_MNEMONIC_PREFETCHT2:
  case ZYDIS_MNEMONIC_PREFETCHW: return true;
  default: return false;
  }
}

bool is_general_memory(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type == ZYDIS_MEMOP_TYPE_MEM &&
         operand.mem.segment != ZYDIS_REGISTER_FS && operand.mem.segment != ZYDIS_REGISTER_GS &&
         operand.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
}

bool is_repeated_string(const Instruction& instruction) {
  const bool repeated =
      (instruction.decoded.attributes &
       (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
  return repeated && instruction.decoded.meta.category == ZYDIS_CATEGORY_STRINGOP;
}

bool writes(const ZydisDecodedOperand& operand) {
  return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}
bool reads(const ZydisDecodedOperand& operand) {
  return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
}

/// Whether an instruction overwrites a register, explicitly or implicitly.
bool overwrites(const Instruction& instruction, std::int8_t number) {
  if (number == StalledAccess::none) return false;
  for (unsigned i = 0; i < instruction.decoded.operand_count; ++i) {
    const ZydisDecodedOperand& operand = instruction.operands[i];
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && writes(operand) &&
        number_of(operand.reg.value) == number)
      return true;
  }
  return false;
}

const ZydisDecodedOperand* memory_of(const Instruction& instruction) {
  if (has_no_data(instruction.decoded.mnemonic)) return nullptr;
  for (unsigned i = 0; i < instruction.decoded.operand_count; ++i)
    if (is_general_memory(instruction.operands[i])) return &instruction.operands[i];
  return nullptr;
}

/// Whether a register was last written by a load, or by a copy of one.
bool was_loaded(std::span<const Instruction> before, std::int8_t number) {
  for (auto at = before.rbegin(); at != before.rend(); ++at) {
    if (!overwrites(*at, number)) continue;
    if (memory_of(*at) != nullptr) return at->decoded.mnemonic == ZYDIS_MNEMONIC_MOV;
    const ZydisDecodedOperand& source = at->operands[1];
    if (at->decoded.mnemonic != ZYDIS_MNEMONIC_MOV || source.type != ZYDIS_OPERAND_TYPE_REGISTER)
      return false;
    number = number_of(source.reg.value);
  }
  return false;
}

/// Factor by which an address computation multiplies a register, if it does only that; else 0.
std::uint64_t multiplied_by_lea(const ZydisDecodedOperandMem& memory, std::int8_t number) {
  if (memory.disp.has_displacement && memory.disp.value != 0) return 0;
  if (number_of(memory.index) != number) return 0;
  if (memory.base == ZYDIS_REGISTER_NONE) return memory.scale;
  return number_of(memory.base) == number ? memory.scale + 1U : 0;
}

/// Factor by which an instruction multiplies a register in place; 0 if it does something else.
std::uint64_t multiplied_in_place(const Instruction& instruction, std::int8_t number) {
  constexpr std::uint64_t max_shift = 16;
  const ZydisDecodedOperand& source = instruction.operands[1];
  const bool is_immediate = source.type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  const bool is_itself =
      source.type == ZYDIS_OPERAND_TYPE_REGISTER && number_of(source.reg.value) == number;
  switch (instruction.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_SHL:
    return is_immediate && source.imm.value.u <= max_shift ? 1ULL << source.imm.value.u : 0;
  case ZYDIS_MNEMONIC_ADD: return is_itself ? 2 : 0;
  case ZYDIS_MNEMONIC_LEA: return multiplied_by_lea(source.mem, number);
  case ZYDIS_MNEMONIC_IMUL: {
    const ZydisDecodedOperand& factor = instruction.operands[2];
    return is_itself && factor.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && factor.imm.value.s > 0
               ? factor.imm.value.u
               : 0;
  }
  default: return 0;
  }
}

/// Factor by which the code before a load multiplies the index that the load overwrites: a loop
/// multiplies the loaded value in the same way before it is the next index.
std::uint32_t multiplied_before(std::span<const Instruction> before, std::int8_t number) {
  constexpr std::uint64_t max_element = 1U << 16; // bytes: larger elements are not assumed
  std::uint64_t factor = 1;
  for (auto at = before.rbegin(); at != before.rend(); ++at) {
    if (!overwrites(*at, number)) continue;
    const std::uint64_t more = multiplied_in_place(*at, number);
    if (more == 0 || factor * more > max_element) break;
    factor *= more;
  }
  return static_cast<std::uint32_t>(factor);
}

/// For a load that has overwritten a register of its address: uses the address that follows from
/// the loaded value, a pointer or an index that the program uses next, or none if it is neither.
void use_loaded_value(StalledAccess& access, const Instruction& instruction,
                      std::span<const Instruction> before) {
  constexpr std::uint8_t pointer_bytes = 8;
  constexpr std::uint8_t min_index_bytes = 4;
  const bool lost_base = overwrites(instruction, access.base);
  const bool is_pointer =
      lost_base && access.index == StalledAccess::none && access.bytes == pointer_bytes;
  const bool is_index = !lost_base && access.bytes >= min_index_bytes;
  access.follows_pointer = is_pointer || is_index;
  access.lost_index = is_index;
  if (is_index) access.scale *= multiplied_before(before, access.index);
  if (!access.follows_pointer) access.base = access.index = StalledAccess::none;
}

/// The access of an instruction before the sample, from the registers after it.
std::optional<StalledAccess> access_of(const Instruction& instruction, std::size_t sampled,
                                       std::span<const Instruction> before) {
  const ZydisDecodedOperand* operand = memory_of(instruction);
  if (operand == nullptr) return std::nullopt;
  StalledAccess access;
  const auto& memory = operand->mem;
  access.instruction =
      static_cast<std::int64_t>(instruction.at) - static_cast<std::int64_t>(sampled);
  access.bytes = static_cast<std::uint8_t>(std::min(operand->size / 8, 255));
  access.is_load = reads(*operand);
  access.is_store = writes(*operand);
  access.displacement = memory.disp.has_displacement ? memory.disp.value : 0;
  if (memory.base == ZYDIS_REGISTER_RIP) {
    access.is_relative = true;
    access.displacement +=
        static_cast<std::int64_t>(instruction.end()) - static_cast<std::int64_t>(sampled);
    return access;
  }
  access.base = number_of(memory.base);
  access.index = number_of(memory.index);
  access.scale = memory.scale;
  access.follows_pointer =
      access.is_load && access.index == StalledAccess::none && was_loaded(before, access.base);
  if (overwrites(instruction, access.base) || overwrites(instruction, access.index))
    use_loaded_value(access, instruction, before);
  return access;
}

StalledAccess access_of_string(const Instruction& instruction) {
  StalledAccess access;
  access.is_string = true;
  for (unsigned i = 0; i < instruction.decoded.operand_count; ++i) {
    const ZydisDecodedOperand& operand = instruction.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    access.bytes = static_cast<std::uint8_t>(operand.size / 8);
    if (access.base == StalledAccess::none || reads(operand)) // what it reads makes it wait
      access.base = number_of(operand.mem.base);
    access.is_load |= reads(operand);
    access.is_store |= writes(operand);
  }
  return access;
}

bool is_conditional_jump(const Instruction& instruction) {
  return instruction.decoded.meta.category == ZYDIS_CATEGORY_COND_BR;
}

/// A comparison with memory that retires together with the jump after it.
std::optional<StalledAccess> fused(std::span<const Instruction> upto, std::size_t sampled) {
  if (upto.size() < 2 || !is_conditional_jump(upto.back())) return std::nullopt;
  const Instruction& compare = upto[upto.size() - 2];
  if (compare.decoded.mnemonic != ZYDIS_MNEMONIC_CMP &&
      compare.decoded.mnemonic != ZYDIS_MNEMONIC_TEST)
    return std::nullopt;
  return access_of(compare, sampled, upto.first(upto.size() - 2));
}

/// The same for a jump from another place to `sampled`.
std::optional<StalledAccess> fused_with_jump_to(std::span<const Instruction> around,
                                                std::size_t sampled) {
  for (std::size_t i = 1; i < around.size(); ++i) {
    const Instruction& jump = around[i];
    const ZydisDecodedOperand& target = jump.operands[0];
    if (!is_conditional_jump(jump) || target.type != ZYDIS_OPERAND_TYPE_IMMEDIATE) continue;
    if (static_cast<std::int64_t>(jump.end()) + target.imm.value.s !=
        static_cast<std::int64_t>(sampled))
      continue;
    if (auto access = fused(around.first(i + 1), sampled)) return access;
  }
  return std::nullopt;
}

std::vector<Instruction> instructions_after(Code code, std::size_t at) {
  std::vector<Instruction> found;
  Instruction instruction;
  const std::size_t end = std::min(code.size(), at + code_after);
  for (; at < end && decode(code, at, instruction); at = instruction.end())
    found.push_back(instruction);
  return found;
}

} // namespace

std::optional<std::uint64_t> StalledAccess::address(std::uint64_t pointer,
                                                    const Registers& values) const {
  if (is_relative) return pointer + static_cast<std::uint64_t>(displacement);
  if (base == none && index == none) return std::nullopt;
  std::uint64_t address = static_cast<std::uint64_t>(displacement);
  if (base != none) address += values[base];
  if (index != none) address += values[index] * scale;
  return address;
}

std::optional<std::uint64_t> StalledAccess::array(std::uint64_t pointer,
                                                  const Registers& values) const {
  StalledAccess first = *this;
  first.index = none;
  return first.address(pointer, values);
}

std::optional<StalledAccess> stalled_access(std::span<const std::uint8_t> code, std::size_t at) {
  Instruction sampled;
  if (decode(code, at, sampled) && is_repeated_string(sampled)) return access_of_string(sampled);
  const std::vector<Instruction> before = instructions_before(code, at);
  if (before.empty()) return std::nullopt;
  const std::span<const Instruction> all = before;
  if (auto access = access_of(before.back(), at, all.first(all.size() - 1))) return access;
  if (auto access = fused(all, at)) return access;
  if (auto access = fused_with_jump_to(instructions_after(code, at), at)) return access;
  return fused_with_jump_to(all, at);
}

} // namespace nearfar::sample
