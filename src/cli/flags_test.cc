#include "cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "cli/program.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

class Flags : public testing::Test {
 protected:
  Flags() {
    add_number(command_, "--layers", layers_, {.min = 1, .max = 100}, "layers of the model");
    add_number(command_, "--rate", rate_, {.min = 0}, "learning rate");
    add_number(command_, "--offset", offset_, {}, "any number");
    add_number(command_, "--bias", bias_, {.min = 0}, "a number that may be missing");
    add_text(command_, "--name", name_, "TEXT", "a name");
    add_texts(command_, "--ref", refs_, "FILE", "any number of files");
    add_argument(command_, "INPUT", input_, "a file");
    add_common_flags(command_, common_);
    command_.on_run([](Output&) {});
  }

  void parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), command_.name());
    Output out(stdout);
    program_.run(std::move(arguments), out);
  }

  // The message and the hint, on two lines, of the error that `arguments` bring about.
  std::string error(std::vector<std::string> arguments) {
    try {
      parse(std::move(arguments));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
      return std::string(e.what()) + "\n" + e.hint();
    }
    return "no error";
  }

  Program program_;
  Command command_ = program_.add_verb("test", "a verb with flags of every kind");
  int layers_ = 6;
  double rate_ = 0.5, offset_ = 0;
  std::optional<double> bias_;
  std::string name_, input_ = "-";
  std::vector<std::string> refs_;
  CommonFlags common_;
};

TEST_F(Flags, FillTheirVariables) {
  parse({"--layers", "12", "--rate=1e-3", "--offset", "-2.5", "--name", "big", "--json"});
  EXPECT_EQ(layers_, 12);
  EXPECT_EQ(rate_, 1e-3);
  EXPECT_EQ(offset_, -2.5);
  EXPECT_EQ(name_, "big");
  EXPECT_TRUE(common_.json);
}

TEST_F(Flags, RepeatedFlagsKeepAllTheirValues) {
  parse({"--ref", "a", "--ref=b", "c", "--bias", "0.5"});
  EXPECT_THAT(refs_, testing::ElementsAre("a", "b"));
  EXPECT_EQ(input_, "c");
  EXPECT_EQ(bias_, 0.5);
}

TEST_F(Flags, AnArgumentMayBeADashOrMissing) {
  parse({"--ref", "a", "-"});
  EXPECT_EQ(input_, "-");
  EXPECT_THAT(refs_, testing::ElementsAre("a"));
  EXPECT_EQ(bias_, std::nullopt);
  EXPECT_EQ(error({"--bias", "-1"}).substr(0, 6), "--bias");
}

TEST_F(Flags, KeepTheirDefaults) {
  parse({});
  EXPECT_EQ(layers_, 6);
  EXPECT_EQ(rate_, 0.5);
  EXPECT_EQ(common_.threads, 0);
  EXPECT_FALSE(common_.json);
}

TEST_F(Flags, TheLastOfARepeatedFlagCounts) {
  parse({"--layers", "2", "--layers", "3"});
  EXPECT_EQ(layers_, 3);
}

TEST_F(Flags, NumbersAreDecimal) {
  parse({"--layers", "010"});
  EXPECT_EQ(layers_, 10);
  EXPECT_THAT(error({"--layers", "0x10"}), testing::HasSubstr("got '0x10'"));
}

TEST_F(Flags, TakeTheWholeRangeOfSeeds) {
  parse({"--seed", "18446744073709551615"});
  EXPECT_EQ(common_.seed, UINT64_MAX);
  EXPECT_EQ(error({"--seed", "18446744073709551616"}),
            "--seed must be an integer between 0 and 18446744073709551615, got "
            "'18446744073709551616'\n"
            "--seed N: random seed (default 0)");
}

TEST_F(Flags, AnErrorSaysWhatWasExpected) {
  EXPECT_EQ(error({"--layers", "0"}),
            "--layers must be an integer between 1 and 100, got '0'\n"
            "--layers N: layers of the model (default 6)");
  EXPECT_THAT(error({"--rate", "-1"}), testing::HasSubstr("a number of at least 0, got '-1'"));
  EXPECT_THAT(error({"--offset", "x"}), testing::HasSubstr("must be a number, got 'x'"));
}

TEST_F(Flags, RefuseWhatIsNoNumber) {
  for (const char* text : {"abc", "", " 1", "1 ", "1.5", "2x", "+1", "99999999999999999999"}) {
    EXPECT_THAT(error({"--layers", text}), testing::HasSubstr("got '" + std::string(text) + "'"));
  }
  for (const char* text : {"nan", "inf", "1e999", "fast"}) {
    EXPECT_THAT(error({"--rate", text}), testing::HasSubstr("got '" + std::string(text) + "'"));
  }
}

TEST_F(Flags, DescribeThemselves) {
  EXPECT_EQ(error({"--layers"}),
            "--layers requires a value\n--layers N: layers of the model (default 6)");
  EXPECT_EQ(error({"--json=1"}), "--json takes no value\n--json: print the result as JSON");
}

}  // namespace
}  // namespace heed::cli
