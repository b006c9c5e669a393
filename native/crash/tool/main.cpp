// nearfar-crash: the explorer as a program, run by `nearfar crash`. Not a public interface.
//
// Arguments  COMMAND KEY=VALUE...; see commands.hpp.
// Output     lines of fields between tabs: progress, site, log, finding, line, warning, result,
//            error. Python makes tables, JSON and SARIF of them.
// Returns    0 if it did what was asked, whatever it found; 2 or 3 after an `error` line. SIGTERM
//            ends an exploration early, with what it has found.
#include <cstdio>
#include <string_view>

#include "crash/tool/commands.hpp"
#include "os/stop.hpp"

int main(int count, char** arguments) {
  using namespace nearfar::crash;
  const std::string_view command = count > 1 ? arguments[1] : "";
  const Arguments given(count - 2, arguments + 2);
  nearfar::os::stop_on_request();
  if (command == "check") return check(given);
  if (command == "sites") return sites(given);
  if (command == "make") return make(given);
  if (command == "fill") return fill(given);
  if (command == "lint") return lint(given);
  if (command == "run") return run(given);
  if (command == "turns") return turns(given);
  if (command == "replay") return replay(given);
  std::fprintf(stderr, "nearfar-crash is started by `nearfar crash`\n");
  return 2;
}
