#include "serve/http/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "serve/http/http_error.h"

namespace heed::serve {
namespace {

const auto kPatient = [] { return false; };

int status_of(Gate& gate, const std::function<bool()>& is_gone = kPatient) {
  try {
    gate.enter(is_gone);
    return 200;
  } catch (const HttpError& error) {
    return error.status();
  }
}

void wait_for_line(const Gate& gate, int length) {
  while (gate.waiting() != length) std::this_thread::yield();
}

TEST(GateTest, RefusesWhenTheLineIsFullOrTheWaitTooLong) {
  Gate gate({.running = 1, .waiting = 1, .wait_seconds = 0.2});
  const Gate::Ticket ticket = gate.enter(kPatient);
  std::thread waiting([&] { EXPECT_EQ(status_of(gate), 503); });
  wait_for_line(gate, 1);
  EXPECT_EQ(status_of(gate), 429);
  waiting.join();
  EXPECT_EQ(gate.waiting(), 0);
  EXPECT_EQ(gate.running(), 1);
}

TEST(GateTest, LetsInInTheOrderOfComing) {
  Gate gate({.running = 1, .waiting = 8, .wait_seconds = 30});
  std::optional<Gate::Ticket> ticket(gate.enter(kPatient));
  std::vector<int> order;  // guarded by the gate: one at a time
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      const Gate::Ticket mine = gate.enter(kPatient);
      order.push_back(i);
    });
    wait_for_line(gate, i + 1);
  }
  ticket.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(GateTest, ForgetsThoseWhoseClientHasGone) {
  Gate gate({.running = 1, .waiting = 2, .wait_seconds = 30});
  const Gate::Ticket ticket = gate.enter(kPatient);
  EXPECT_EQ(status_of(gate, [] { return true; }), kClientGone);
  EXPECT_EQ(gate.waiting(), 0);
}

TEST(GateTest, ClosesForThoseWhoWaitToo) {
  Gate gate({.running = 1, .waiting = 2, .wait_seconds = 30});
  std::optional<Gate::Ticket> ticket(gate.enter(kPatient));
  std::thread waiting([&] { EXPECT_EQ(status_of(gate), 503); });
  wait_for_line(gate, 1);
  gate.close();
  waiting.join();
  EXPECT_EQ(status_of(gate), 503);
  EXPECT_FALSE(gate.wait_until_empty(0.01));
  ticket.reset();
  EXPECT_TRUE(gate.wait_until_empty(0.01));
}

}  // namespace
}  // namespace heed::serve
