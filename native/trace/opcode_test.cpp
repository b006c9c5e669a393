#include "trace/recorder/opcode.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <initializer_list>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace nearfar::trace;

namespace {

Decoded of(std::initializer_list<int> bytes) {
  std::vector<std::uint8_t> code;
  for (const int byte : bytes)
    code.push_back(static_cast<std::uint8_t>(byte));
  return decode(code.data(), code.size());
}
void check(std::initializer_list<int> bytes, Opcode opcode, unsigned size = 8) {
  const Decoded decoded = of(bytes);
  CHECK(decoded.opcode == opcode);
  if (opcode == Opcode::load || opcode == Opcode::store) CHECK(decoded.bytes == size);
}

} // namespace

TEST_CASE("moves and arithmetic are decoded") {
  check({0x48, 0x8b, 0x07}, Opcode::load, 8);              // mov (%rdi),%rax
  check({0x8b, 0x07}, Opcode::load, 4);                    // mov (%rdi),%eax
  check({0x66, 0x8b, 0x07}, Opcode::load, 2);              // mov (%rdi),%ax
  check({0x0f, 0xb6, 0x07}, Opcode::load, 1);              // movzbl (%rdi),%eax
  check({0x48, 0x63, 0x07}, Opcode::load, 4);              // movslq (%rdi),%rax
  check({0x88, 0x07}, Opcode::store, 1);                   // mov %al,(%rdi)
  check({0x48, 0xc7, 0x07, 1, 0, 0, 0}, Opcode::store, 8); // movq $1,(%rdi)
  check({0x03, 0x07}, Opcode::load, 4);                    // add (%rdi),%eax
  check({0x39, 0x07}, Opcode::load, 4);                    // cmp %eax,(%rdi)
  check({0x83, 0x3f, 0x05}, Opcode::load, 4);              // cmpl $5,(%rdi)
  check({0x58}, Opcode::load, 8);                          // pop %rax
  check({0xc3}, Opcode::load, 8);                          // ret
  check({0x55}, Opcode::push, 8);                          // push %rbp
  check({0xe8, 0, 0, 0, 0}, Opcode::push, 8);              // call
  check({0xff, 0x17}, Opcode::stack);                      // call *(%rdi)
}

TEST_CASE("read-modify-write instructions are left to the emulator") {
  check({0x01, 0x07}, Opcode::scalar);                   // add %eax,(%rdi)
  check({0x83, 0x07, 0x05}, Opcode::scalar);             // addl $5,(%rdi)
  check({0x48, 0xa5}, Opcode::scalar);                   // movsq
  check({0x48, 0x89, 0xc7}, Opcode::scalar);             // mov %rax,%rdi: no memory
  check({0x48, 0x8d, 0x07}, Opcode::scalar);             // lea
  check({0xf0, 0x48, 0x0f, 0xc1, 0x07}, Opcode::locked); // lock xadd
  check({0x48, 0x87, 0x07}, Opcode::locked);             // xchg
}

TEST_CASE("vector moves have their piece size") {
  check({0x0f, 0x10, 0x07}, Opcode::load);                     // movups
  check({0xf2, 0x0f, 0x10, 0x07}, Opcode::load, 8);            // movsd
  check({0xf3, 0x0f, 0x10, 0x07}, Opcode::load, 4);            // movss
  check({0x66, 0x0f, 0x7f, 0x07}, Opcode::store);              // movdqa
  check({0xc5, 0xfe, 0x6f, 0x07}, Opcode::load);               // vmovdqu 32 bytes
  check({0xc5, 0xfe, 0x7f, 0x07}, Opcode::store);              // vmovdqu
  check({0xc4, 0xe2, 0x7d, 0x18, 0x07}, Opcode::wide);         // vbroadcastss
  check({0x62, 0xf1, 0x7c, 0x48, 0x10, 0x07}, Opcode::scalar); // AVX-512: unknown to the emulator
}

TEST_CASE("flushes and non-temporal stores are decoded") {
  check({0x0f, 0xae, 0x3f}, Opcode::flush);          // clflush
  check({0x66, 0x0f, 0xae, 0x3f}, Opcode::flush);    // clflushopt
  check({0x66, 0x0f, 0xae, 0x37}, Opcode::flush);    // clwb
  check({0x0f, 0xae, 0xf8}, Opcode::scalar);         // sfence
  check({0x48, 0x0f, 0xc3, 0x07}, Opcode::nt_store); // movnti
  check({0x66, 0x0f, 0xe7, 0x07}, Opcode::nt_store); // movntdq
  check({0xc5, 0xfd, 0xe7, 0x07}, Opcode::nt_store); // vmovntdq
}

TEST_CASE("floating point is detected") {
  CHECK(of({0xf2, 0x0f, 0x58, 0xc1}).floating);       // addsd
  CHECK(of({0xc5, 0xf3, 0x59, 0xc1}).floating);       // vmulsd
  CHECK(of({0xd9, 0xfe}).floating);                   // fsin
  CHECK_FALSE(of({0x66, 0x0f, 0xfe, 0xc1}).floating); // paddd
  CHECK_FALSE(of({0x48, 0x01, 0xc7}).floating);
}

TEST_CASE("a marker is not padding") {
  const std::uint8_t mark[] = {0x0f, 0x1f, 0x80, 0x46, 0x4e, 0x46, 0x4e};
  const std::uint8_t padding[] = {0x0f, 0x1f, 0x80, 0, 0, 0, 0};
  CHECK(mark_of(mark, 7) == Mark::allocated);
  CHECK(mark_of(padding, 7) == Mark::none);
  CHECK(mark_of(mark, 6) == Mark::none);
}

TEST_CASE("bytes behind a cut instruction are not read") {
  const long page = sysconf(_SC_PAGESIZE);
  const auto size = static_cast<std::size_t>(page);
  void* at = mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  auto* end = static_cast<std::uint8_t*>(at) + size; // what is read behind it is a fault
  REQUIRE(mprotect(end, size, PROT_NONE) == 0);
  const std::uint8_t code[] = {0x66, 0xf2, 0x48, 0x0f, 0xc4, 0xc5, 0xc7, 0xff};
  std::size_t decoded = 0;
  for (std::size_t begin = 0; begin < sizeof code; ++begin)
    for (std::size_t bytes = 1; bytes <= sizeof code - begin; ++bytes) {
      std::memcpy(end - bytes, code + begin, bytes);
      const Decoded cut = decode(end - bytes, bytes);
      CHECK(cut.opcode != Opcode::flush);
      ++decoded;
    }
  CHECK(decode(end, 0).opcode == Opcode::scalar);
  CHECK(decoded == sizeof code * (sizeof code + 1) / 2);
  munmap(at, 2 * size);
}

TEST_CASE("a load into its own address may be followed by the next one of a chain") {
  CHECK(of({0x48, 0x8b, 0x00}).pointer_chase);                         // mov (%rax),%rax
  CHECK(of({0x48, 0x8b, 0x04, 0x03}).pointer_chase);                   // mov (%rbx,%rax),%rax
  CHECK(of({0x48, 0x8b, 0x44, 0xc3, 0x08}).pointer_chase);             // mov 8(%rbx,%rax,8),%rax
  CHECK(of({0x48, 0x63, 0x04, 0x83}).pointer_chase);                   // movslq (%rbx,%rax,4),%rax
  CHECK(of({0x8b, 0x04, 0x83}).pointer_chase);                         // mov (%rbx,%rax,4),%eax
  CHECK(of({0x4d, 0x8b, 0x3f}).pointer_chase);                         // mov (%r15),%r15
  CHECK(of({0x4e, 0x8b, 0x3c, 0xfb}).pointer_chase);                   // mov (%rbx,%r15,8),%r15
  CHECK_FALSE(of({0x49, 0x8b, 0x3f}).pointer_chase);                   // mov (%r15),%rdi
  CHECK_FALSE(of({0x4c, 0x8b, 0x3f}).pointer_chase);                   // mov (%rdi),%r15
  CHECK_FALSE(of({0x48, 0x8b, 0x07}).pointer_chase);                   // mov (%rdi),%rax
  CHECK_FALSE(of({0x48, 0x8b, 0x2d, 1, 0, 0, 0}).pointer_chase);       // mov 1(%rip),%rbp
  CHECK(of({0x48, 0x8b, 0x24, 0x24}).pointer_chase);                   // mov (%rsp),%rsp
  CHECK_FALSE(of({0x48, 0x8b, 0x2c, 0xc5, 1, 0, 0, 0}).pointer_chase); // mov 1(,%rax,8),%rbp
  CHECK_FALSE(of({0x48, 0x89, 0x00}).pointer_chase);                   // mov %rax,(%rax)
  CHECK_FALSE(of({0x48, 0x03, 0x00}).pointer_chase);                   // add (%rax),%rax
}
