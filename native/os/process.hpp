// This process: its environment as it was started with, its name and threads, ends and forks.
//
// Freestanding   no exceptions, no C++ runtime; nothing allocates but start_thread().
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::os {

/// A variable of the environment. Before libc has set up its copy (below malloc in the loader), it
/// is read from /proc/self/environ. Empty if it is not set, or the process runs with raised
/// privileges. False if the value is longer than `size` - 1.
bool environment(const char* name, char* value, std::size_t size);

/// Writes all bytes, also after interrupted calls. An errno, 0 for success.
int write_all(int fd, const char* text, std::size_t bytes);

/// Opens a file for writing from its beginning; -1 with errno set.
int create_text(const char* path);
void close_descriptor(int fd);

/// Reads the beginning of a small file without stdio, which would allocate; zero-terminated. False
/// if it is not there, or empty.
bool read_text(const char* path, char* text, std::size_t size);

/// Reads up to `size` bytes, fewer at the end of the file. An errno, 0 for success.
int read_all(int fd, std::byte* to, std::size_t size, std::size_t& bytes);

/// Reads a whole file into memory of map_anonymous(), zero-terminated. nullptr with errno set;
/// EINVAL: it is not a regular file.
char* read_file(const char* path, std::size_t& bytes);

/// A random number that the kernel chose when the program was started; children have it too.
std::uint64_t process_secret();

int process_number();
int thread_number();
/// Name of the calling thread, at most 15 characters.
void thread_name(char (&name)[16]);

/// Starts a detached thread with a small stack and all signals blocked. An errno, 0 for success.
int start_thread(void* (*run)(void*));
void name_this_thread(const char* name);
void sleep_ms(unsigned milliseconds);
/// Milliseconds since an arbitrary start, as of the kernel's last timer interrupt. Costs a few
/// nanoseconds.
std::uint64_t coarse_ms();

/// Registers `run` to be called with the value set by set_thread_value() when such a thread ends.
void at_thread_exit(void (*run)(void*));
void set_thread_value(void* value);

/// Registers functions that are called around fork(), see pthread_atfork(3). Before `before` is
/// called, signals are blocked, and then libc's lock of the list of streams is acquired; both are
/// undone after the other functions. Without this, fork() would acquire that lock after `before`
/// has acquired locks that a thread with the lock of a stream may wait for, and fflush(NULL) holds
/// the list while it waits for streams: a deadlock. If signals were not blocked first, a handler
/// that forks between the two would have a child that unlocks a list that is not locked.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());
/// For `before` of at_fork(): releases the lock of the list for another thread that forks. A
/// recursive lock that an interrupted call of this thread holds as well stays locked.
void pause_fork(unsigned milliseconds);

void at_exit(void (*run)());
/// False if the signal cannot be caught, or something else catches it.
bool on_signal(int number, void (*run)(int));

[[noreturn]] void abort_process();
[[noreturn]] void exit_process(int code);

} // namespace nearfar::os
