#include <doctest/doctest.h>

#include <initializer_list>
#include <vector>

#include "sample/stalled_access.hpp"

using namespace nearfar::sample;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr unsigned rax = 0, rcx = 1, rdi = 7;

/// Code that is a multiple of one-byte no-operations before and after `middle`.
struct Code {
  Bytes bytes = Bytes(64, 0x90);
  Code(std::initializer_list<std::uint8_t> middle) {
    bytes.insert(bytes.end(), middle);
    bytes.insert(bytes.end(), 64, 0x90);
  }
  std::optional<StalledAccess> at(std::size_t middle) const {
    return stalled_access(bytes, 64 + middle);
  }
};

} // namespace

TEST_CASE("a sample after a load was waiting for the load") {
  const Code code{0x48, 0x8b, 0x4f, 0x08}; // mov rcx, [rdi+8]
  const auto access = code.at(4);
  REQUIRE(access);
  CHECK(access->instruction == -4);
  CHECK(access->bytes == 8);
  CHECK(access->is_load);
  CHECK_FALSE(access->is_store);
  CHECK_FALSE(access->follows_pointer);
  Registers values{};
  values[rdi] = 0x1000;
  CHECK(access->address(0, values) == 0x1008);
}

TEST_CASE("an indexed operand is computed from both registers") {
  const Code code{0x8b, 0x0c, 0x87}; // mov ecx, [rdi+rax*4]
  const auto access = code.at(3);
  REQUIRE(access);
  Registers values{};
  values[rdi] = 0x2000;
  values[rax] = 3;
  CHECK(access->address(0, values) == 0x200c);
  CHECK(access->bytes == 4);
}

TEST_CASE("a load that overwrites its base follows a pointer, which stands for the address") {
  const Code code{0x48, 0x8b, 0x7f, 0x10}; // mov rdi, [rdi+16]
  const auto access = code.at(4);
  REQUIRE(access);
  CHECK(access->follows_pointer);
  Registers values{};
  values[rdi] = 0x3000;
  CHECK(access->address(0, values) == 0x3010);
}

TEST_CASE("a load that overwrites its index follows an index, which stands for the address") {
  const Code code{0x8b, 0x04, 0x87}; // mov eax, [rdi+rax*4]
  const auto access = code.at(3);
  REQUIRE(access);
  CHECK(access->follows_pointer);
  Registers values{};
  values[rdi] = 0x4000;
  values[rax] = 5;
  CHECK(access->address(0, values) == 0x4014);
}

TEST_CASE("an index that a loop multiplies in place before it loads the next one") {
  Registers values{};
  values[rdi] = 0x4000;
  values[rax] = 5;
  const Code shifted{0x48, 0xc1, 0xe0, 0x06,  // shl rax, 6
                     0x48, 0x8b, 0x04, 0x07}; // mov rax, [rdi+rax]
  REQUIRE(shifted.at(8));
  CHECK(shifted.at(8)->address(0, values) == 0x4000 + 5 * 64);
  const Code elements{0x48, 0x8d, 0x04, 0x40,  // lea rax, [rax+rax*2]
                      0x48, 0x8b, 0x04, 0xc7}; // mov rax, [rdi+rax*8]
  REQUIRE(elements.at(8));
  CHECK(elements.at(8)->address(0, values) == 0x4000 + 5 * 24);
  const Code multiplied{0x48, 0x6b, 0xc0, 0x28,  // imul rax, rax, 40
                        0x48, 0x01, 0xc0,        // add rax, rax
                        0x48, 0x8b, 0x04, 0x07}; // mov rax, [rdi+rax]
  REQUIRE(multiplied.at(11));
  CHECK(multiplied.at(11)->address(0, values) == 0x4000 + 5 * 80);
  const Code other{0x48, 0xc1, 0xe0, 0x06,  // shl rax, 6
                   0x48, 0x89, 0xc8,        // mov rax, rcx
                   0x48, 0x8b, 0x04, 0x07}; // mov rax, [rdi+rax]
  REQUIRE(other.at(11));
  CHECK(other.at(11)->address(0, values) == 0x4005);
}

TEST_CASE("a load that leaves neither a pointer nor an index has no address") {
  const Code bytes{0x0f, 0xb6, 0x04, 0x07}; // movzx eax, byte [rdi+rax]
  REQUIRE(bytes.at(4));
  CHECK_FALSE(bytes.at(4)->address(0, Registers{}));
  const Code narrow{0x8b, 0x3f}; // mov edi, [rdi]
  REQUIRE(narrow.at(2));
  CHECK_FALSE(narrow.at(2)->address(0, Registers{}));
}

TEST_CASE("a base that was loaded before is a pointer, also through a copy") {
  const Code code{0x48, 0x8b, 0x4f, 0x08,  // mov rcx, [rdi+8]
                  0x48, 0x89, 0xc8,        // mov rax, rcx
                  0x48, 0x8b, 0x50, 0x10}; // mov rdx, [rax+16]
  const auto access = code.at(11);
  REQUIRE(access);
  CHECK(access->follows_pointer);
}

TEST_CASE("an operand relative to the instruction pointer is relative to the sample's") {
  const Code code{0x48, 0x8b, 0x05, 0x00, 0x01, 0x00, 0x00}; // mov rax, [rip+0x100]
  const auto access = code.at(7);
  REQUIRE(access);
  CHECK(access->address(0x5000, Registers{}) == 0x5100);
}

TEST_CASE("a store does not load, and an addition to memory does both") {
  const Code store{0x48, 0x89, 0x0f}; // mov [rdi], rcx
  REQUIRE(store.at(3));
  CHECK(store.at(3)->is_store);
  CHECK_FALSE(store.at(3)->is_load);
  const Code addition{0x48, 0x01, 0x0f}; // add [rdi], rcx
  REQUIRE(addition.at(3));
  CHECK(addition.at(3)->is_store);
  CHECK(addition.at(3)->is_load);
}

TEST_CASE("a comparison with memory is seen on both sides of the jump after it") {
  const Code code{0x48, 0x3b, 0x0f,        // cmp rcx, [rdi]
                  0x7c, 0x02,              // jl +2
                  0x90, 0x90,              //
                  0x48, 0x83, 0xc7, 0x08}; // add rdi, 8: the target
  REQUIRE(code.at(5));
  CHECK(code.at(5)->instruction == -5);
  REQUIRE(code.at(7));
  CHECK(code.at(7)->instruction == -7);
  CHECK_FALSE(code.at(6));
}

TEST_CASE("a repeated string instruction is interrupted in itself, on what it reads") {
  const Code code{0xf3, 0x48, 0xa5}; // rep movsq
  const auto access = code.at(0);
  REQUIRE(access);
  CHECK(access->is_string);
  CHECK(access->is_load);
  CHECK(access->is_store);
  Registers values{};
  values[6] = 0x7000; // rsi
  CHECK(access->address(0, values) == 0x7000);
}

TEST_CASE("computation, address arithmetic and prefetches wait for nothing") {
  CHECK_FALSE(Code({0x48, 0x01, 0xc8}).at(3));       // add rax, rcx
  CHECK_FALSE(Code({0x48, 0x8d, 0x47, 0x08}).at(4)); // lea rax, [rdi+8]
  CHECK_FALSE(Code({0x0f, 0x18, 0x0f}).at(3));       // prefetcht0 [rdi]
  CHECK_FALSE(Code({0x64, 0x48, 0x8b, 0x07}).at(4)); // mov rax, fs:[rdi]
}

TEST_CASE("bytes that are not code, or code that ends, have no access") {
  const Bytes garbage(128, 0x06); // no instruction in 64-bit mode
  CHECK_FALSE(stalled_access(garbage, 64));
  CHECK_FALSE(stalled_access({}, 0));
  const Bytes cut{0x48, 0x8b};
  CHECK_FALSE(stalled_access(cut, 2));
  CHECK_FALSE(stalled_access(cut, 0));
}
