#include "cli/training_display.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/text/number_text.h"
#include "cli/table.h"

namespace heed::cli {
namespace {

std::atomic<bool> stop_requested = false;

constexpr double kBarSeconds = 0.1, kLineSeconds = 10;

// As wide as fits before the text; empty if there is not enough room.
std::string bar(double share, size_t columns, size_t text) {
  constexpr size_t kMostCells = 20, kLeastCells = 4, kFrame = 3;  // [] and a space
  if (columns < text + kFrame + kLeastCells) return "";
  const size_t cells = std::min(kMostCells, columns - text - kFrame);
  const auto filled = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(cells));
  return "[" + std::string(filled, '#') + std::string(cells - filled, '.') + "] ";
}

}  // namespace

StopOnInterrupt::StopOnInterrupt() : stack_(size_t{1} << 16) {
  stop_requested = false;
  stack_t stack{};
  stack.ss_sp = stack_.data();
  stack.ss_size = stack_.size();
  sigaltstack(&stack, &before_stack_);
  struct sigaction action {};
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  action.sa_handler = [](int signal) {
    constexpr int kKilledBySignal = 128;  // what shells report
    if (stop_requested.exchange(true)) _exit(kKilledBySignal + signal);
    constexpr std::string_view kStopping = "\nstopping after this step; press again to exit now\n";
    const int before = errno;
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, kStopping.data(), kStopping.size());
    errno = before;
  };
  sigaction(SIGINT, &action, &before_interrupt_);
  sigaction(SIGTERM, &action, &before_terminate_);
}

StopOnInterrupt::~StopOnInterrupt() {
  sigaction(SIGINT, &before_interrupt_, nullptr);
  sigaction(SIGTERM, &before_terminate_, nullptr);
  sigaltstack(&before_stack_, nullptr);
}

const std::atomic<bool>& StopOnInterrupt::requested() { return stop_requested; }

bool one_of_several() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* size =
        std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the environment is not changed
    if (size && std::atoi(size) > 1) return true;
  }
  return false;
}

std::string duration(double seconds) {
  const auto total = int64_t{std::llround(seconds)};
  const int64_t hours = total / 3600, minutes = total / 60 % 60;
  if (hours > 0) return std::to_string(hours) + "h" + std::to_string(minutes) + "m";
  if (minutes > 0) return std::to_string(minutes) + "m" + std::to_string(total % 60) + "s";
  return std::to_string(total) + "s";
}

void TrainingDisplay::step(const TrainProgress& p) {
  const auto now = std::chrono::steady_clock::now();
  const bool last = p.step == p.steps;
  const double interval = terminal_ ? kBarSeconds : kLineSeconds;
  if (!last && p.step > 1 && std::chrono::duration<double>(now - shown_).count() < interval) {
    return;
  }
  shown_ = now;
  const std::string text = "step " + std::to_string(p.step) + "/" + std::to_string(p.steps) +
                           "  loss " + fixed(p.loss, 4) + "  lr " +
                           significant(p.learning_rate, 3) + "  " + fixed(p.tokens_per_second, 0) +
                           " tokens/s  " + duration(p.remaining_seconds) + " left";
  if (terminal_) {
    const double share = static_cast<double>(p.step) / static_cast<double>(p.steps);
    line_.show(bar(share, line_.columns(), text.size()) + text);
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

void TrainingDisplay::note(std::string_view text) {
  line_.clear();
  std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace heed::cli
