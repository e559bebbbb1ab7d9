#include "cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "cli/flags.h"
#include "heed/error.h"

namespace heed::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// A small command line: `heed greet [--name TEXT] [--loud]`, `heed count up`.
class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    const Command greet = program_.add_verb("greet", "Say hello");
    add_text(greet, "--name", name_, "TEXT", "whom to greet");
    add_switch(greet, "--loud", loud_, "shout");
    greet.on_run([this](Output& out) { out.write("hello " + name_ + "\n"); });

    const Command count = program_.add_verb("count", "Count");
    const Command up = count.add_topic("up", "Count upwards");
    up.on_run([](Output& out) { out.write("1 2 3\n"); });
  }

  std::string output(std::vector<std::string> arguments) {
    const File file(std::tmpfile(), std::fclose);
    Output out(file.get());
    program_.run(std::move(arguments), out);
    std::string text(static_cast<size_t>(std::ftell(file.get())), '\0');
    std::rewind(file.get());
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    return text;
  }

  // "message | hint"
  std::string error(std::vector<std::string> arguments) {
    try {
      return "no error, but: " + output(std::move(arguments));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
      return std::string(e.what()) + " | " + e.hint();
    }
  }

  Program program_;
  std::string name_ = "you";
  bool loud_ = false;
};

TEST_F(ProgramTest, RunsTheCommandThatIsNamed) {
  EXPECT_EQ(output({"greet"}), "hello you\n");
  EXPECT_EQ(output({"greet", "--name", "Ada"}), "hello Ada\n");
  EXPECT_EQ(output({"count", "up"}), "1 2 3\n");
}

TEST_F(ProgramTest, AnEmptyValueIsAValue) {
  EXPECT_EQ(output({"greet", "--name=", "--loud"}), "hello \n");
  EXPECT_TRUE(loud_);
}

TEST_F(ProgramTest, HelpListsVerbsAndFlags) {
  EXPECT_THAT(output({"--help"}), HasSubstr("Usage: heed COMMAND"));
  EXPECT_THAT(output({}), HasSubstr("Say hello"));
  EXPECT_THAT(output({"greet", "-h"}), HasSubstr("whom to greet"));
  EXPECT_THAT(output({"count", "--help"}), HasSubstr("Usage: heed count TOPIC"));
  EXPECT_THAT(output({"--version"}), StartsWith("heed "));
}

TEST_F(ProgramTest, AnUnknownNameSuggestsTheNearestOne) {
  EXPECT_EQ(error({"gret"}), "unknown command 'gret' | did you mean 'greet'?");
  EXPECT_EQ(error({"count", "pu"}), "heed count: unknown topic 'pu' | did you mean 'up'?");
  EXPECT_EQ(error({"greet", "--nmae", "Ada"}),
            "heed greet: unknown flag '--nmae' | did you mean '--name'?");
  EXPECT_EQ(error({"greet", "--nmae=Ada"}),
            "heed greet: unknown flag '--nmae' | did you mean '--name'?");
}

TEST_F(ProgramTest, AnUnknownNameWithoutSuggestionPointsToHelp) {
  EXPECT_EQ(error({"cook"}), "unknown command 'cook' | run 'heed --help'");
  EXPECT_EQ(error({"greet", "--verbose"}),
            "heed greet: unknown flag '--verbose' | run 'heed greet --help'");
  EXPECT_EQ(error({"greet", "Ada"}),
            "heed greet: unexpected argument 'Ada' | run 'heed greet --help'");
}

TEST_F(ProgramTest, AFlagBeforeItsVerbGetsAHint) {
  EXPECT_EQ(error({"--loud", "greet"}),
            "heed: unknown flag '--loud' | put it last: heed greet --loud");
}

TEST_F(ProgramTest, HelpDoesNotHideAnError) {
  EXPECT_EQ(error({"gret", "--help"}), "unknown command 'gret' | did you mean 'greet'?");
}

TEST_F(ProgramTest, OneVerbAtATime) {
  EXPECT_THAT(error({"greet", "count", "up"}), HasSubstr("unexpected argument 'count'"));
}

TEST_F(ProgramTest, CountsValues) {
  EXPECT_EQ(error({"greet", "--name"}),
            "--name requires a value | --name TEXT: whom to greet (default you)");
  EXPECT_EQ(error({"greet", "--loud=yes"}), "--loud takes no value | --loud: shout");
}

TEST_F(ProgramTest, AVerbWithTopicsNeedsOne) {
  EXPECT_EQ(error({"count"}), "heed count requires a topic | one of: up");
}

}  // namespace
}  // namespace heed::cli
