#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "support/scratch.hpp"
#include "tiny.hpp"

/// The program as its user meets it: exit codes, messages, Ctrl-C.
namespace normscope::lab {
namespace {

class Program : public ::testing::Test {
 protected:
  Program() {
    test::write_file(scratch_ / "text", test::tiny_text());
    test::write_file(scratch_ / "licence", test::tiny_licence);
    test::write_file(scratch_ / "recipe", to_json(test::tiny_recipe()));
  }

  /// Starts the program with `more` arguments; its error output goes to the file "stderr".
  pid_t start(const std::string& recipe, const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {NORMSCOPE_LAB_GPT,
                                      "--text",
                                      (scratch_ / "text").string(),
                                      "--tokenizer-text",
                                      (scratch_ / "licence").string(),
                                      "--recipe",
                                      (scratch_ / recipe).string(),
                                      "--out",
                                      (scratch_ / out).string()};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string errors = (scratch_ / "stderr").string();
    const pid_t process = fork();
    if (process == 0) {
      dup2(open(errors.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDERR_FILENO);
      dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    return process;
  }

  static int exit_code(pid_t process) {
    int status = 0;
    waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  [[nodiscard]] std::string errors() const { return test::read_file(scratch_ / "stderr"); }

  normscope::test::Scratch scratch_;
};

TEST_F(Program, WritesTheModelAndNothingElse) {
  ASSERT_EQ(exit_code(start("recipe", "out")), 0) << errors();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "out")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{"README.md", "config.json", "model.safetensors", "tokenizer.json"}));
  EXPECT_EQ(errors(), "");
}

TEST_F(Program, GoesOnAfterCtrlCToTheSameBytes) {
  Recipe recipe = test::tiny_recipe();
  recipe.steps = 1500;
  recipe.measure_every = 500;
  test::write_file(scratch_ / "long", to_json(recipe));
  ASSERT_EQ(exit_code(start("long", "whole")), 0) << errors();

  const pid_t process = start("long", "broken");
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!std::filesystem::exists(scratch_ / "broken") && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(process, SIGINT);
  ASSERT_EQ(exit_code(process), 130) << errors();
  EXPECT_EQ(errors(), "interrupted; the same command with --resume goes on\n");
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "broken/model.safetensors"));

  ASSERT_EQ(exit_code(start("long", "broken", {"--resume"})), 0) << errors();
  for (const char* name : {"model.safetensors", "README.md"}) {
    EXPECT_EQ(test::read_file(scratch_ / "broken" / name), test::read_file(scratch_ / "whole" / name))
        << name;
  }
}

TEST_F(Program, SaysBadInputInOneLine) {
  test::write_file(scratch_ / "bad", "{");
  EXPECT_EQ(exit_code(start("bad", "out")), 3);
  EXPECT_EQ(errors(),
            "recipe: " + (scratch_ / "bad").string() + ": no JSON at byte 2, expected one object\n");
  EXPECT_EQ(exit_code(start("no such recipe", "out")), 3);
  EXPECT_EQ(exit_code(start("recipe", "out", {"--resume"})), 3);
  EXPECT_EQ(exit_code(start("recipe", "text/out")), 3);
}

TEST(Recipes, AreReadStrictly) {
  const normscope::test::Scratch scratch;
  const std::string recipe = to_json(test::tiny_recipe());
  const auto expect_complaint = [&](const std::string& text, const std::string& complaint) {
    test::write_file(scratch / "bad", text);
    try {
      (void)read_recipe(scratch / "bad");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "recipe: " + (scratch / "bad").string() + ": " + complaint);
    }
  };
  expect_complaint("{", "no JSON at byte 2, expected one object");
  expect_complaint("[]", "a JSON array, expected one object");
  expect_complaint("{\"seed\": 1}", "no \"tokens\"");
  expect_complaint(std::string(recipe).replace(recipe.find("\"heads\": 2"), 10, "\"heads\": 3"),
                   "\"heads\" is 3, expected a divisor of the width 8");
  expect_complaint(std::string(recipe).replace(recipe.find("\"heads\": 2"), 10, "\"heads\": -2"),
                   "\"heads\" is -2, expected a whole number from 1 to 100");
  expect_complaint(std::string(recipe).replace(1, 0, "\"epochs\": 3,"), "\"epochs\" is no field of a recipe");
}

TEST_F(Program, RejectsAWrongCommandLine) {
  EXPECT_EQ(exit_code(start("recipe", "out", {"--threads", "0"})), 2);
  EXPECT_EQ(exit_code(start("recipe", "out", {"--epochs", "3"})), 2);
}

}  // namespace
}  // namespace normscope::lab
