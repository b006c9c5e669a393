#include "base/result.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <memory>
#include <string>

using nearfar::Done;
using nearfar::Errc;
using nearfar::Error;
using nearfar::Result;
using nearfar::Status;

TEST_CASE("a result carries its value") {
  Result<std::string> result(std::string("near"));
  REQUIRE(bool(result));
  CHECK(*result == "near");
  CHECK(result->size() == 4);
}

TEST_CASE("a result carries its error") {
  Result<std::string> result(
      Error::make(Errc::no_space, "%d of %s", 3, "them").try_next("use %d", 2));
  REQUIRE(!result);
  CHECK(result.error().code == Errc::no_space);
  CHECK(std::string(result.error().what) == "3 of them");
  CHECK(std::string(result.error().next) == "use 2");
  CHECK(result.error().os_errno == 0);
}

TEST_CASE("a result moves what cannot be copied, and destroys it once") {
  auto counted = std::make_shared<int>(7);
  {
    Result<std::unique_ptr<std::shared_ptr<int>>> result(
        std::make_unique<std::shared_ptr<int>>(counted));
    Result<std::unique_ptr<std::shared_ptr<int>>> moved(std::move(result));
    REQUIRE(bool(moved));
    CHECK(***moved == 7);
    CHECK(counted.use_count() == 2);
  }
  CHECK(counted.use_count() == 1);
}

TEST_CASE("a moved error stays an error") {
  Result<std::string> result(Error::make(Errc::exists, "there"));
  Result<std::string> moved(std::move(result));
  REQUIRE(!moved);
  CHECK(std::string(moved.error().what) == "there");
}

TEST_CASE("texts that are too long are cut, not overrun") {
  const std::string text(1000, 'x');
  Error error = Error::make(Errc::bad_input, "%s", text.c_str());
  error.try_next("%s", text.c_str());
  CHECK(std::strlen(error.what) == sizeof error.what - 1);
  CHECK(std::strlen(error.next) == sizeof error.next - 1);
}

TEST_CASE("a result can be assigned, whatever it held") {
  Result<std::string> result = std::string(100, 'a');
  result = Result<std::string>(Error::make(Errc::exists, "in the way"));
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::exists);
  result = Result<std::string>(std::string(100, 'b'));
  REQUIRE(result);
  CHECK(*result == std::string(100, 'b'));
  Status status = Done{};
  status = Error::make(Errc::no_space, "full");
  CHECK_FALSE(status);
}
