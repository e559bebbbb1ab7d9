#include "heed/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/sanitized_testing.h"
#include "heed/error.h"
#include "infer/engine/engine_testing.h"

namespace heed {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<int32_t>;

template <class Action>
ErrorCode code_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

SearchOptions beam_of(int beam, int64_t most) {
  SearchOptions o;
  o.beam = beam, o.nbest = beam, o.max_new_tokens = most, o.length_penalty = 0.6;
  return o;
}

// The ids that are no text.
std::vector<Ids> all_but_bytes() {
  std::vector<Ids> ids{{0}, {2}};
  for (int32_t id = 259; id < 384; ++id) ids.push_back({id});
  return ids;
}

// Ids and scores of all answers, exactly.
struct Output {
  std::vector<Ids> ids;
  std::vector<double> scores;
  bool operator==(const Output&) const = default;
};

Output output_of(const Result& result) {
  Output out;
  for (const Answer& answer : result.answers) {
    out.ids.push_back(answer.ids), out.scores.push_back(answer.score);
  }
  return out;
}

std::vector<Output> run_all(Engine& engine, const std::vector<Ids>& inputs,
                            const SearchOptions& search) {
  std::vector<Request> requests;
  for (const Ids& ids : inputs) requests.push_back({.ids = ids, .search = search});
  std::vector<Output> outputs(inputs.size());
  engine.run(std::move(requests),
             [&](size_t i, Result&& result) { outputs[i] = output_of(result); });
  return outputs;
}

class EngineFamilyTest : public testing::TestWithParam<Family> {
 protected:
  const Model model_ = tiny_model(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Families, EngineFamilyTest,
                         testing::Values(Family::encoder_decoder, Family::decoder_only),
                         [](const auto& suite) { return std::string(name_of(suite.param)); });

// The promise that everything rests on.
TEST_P(EngineFamilyTest, AResultNeverDependsOnWhatRunsBesideIt) {
  const std::vector<Ids> inputs = random_inputs(20, 7);
  for (const int beam : {1, 4}) {
    const SearchOptions search = beam_of(beam, 12);
    std::vector<Output> alone;
    {
      Engine engine(model_, {.threads = 1, .kv_memory_bytes = 8 << 20});
      for (const Ids& ids : inputs) {
        alone.push_back(output_of(engine.submit({.ids = ids, .search = search}).get()));
      }
    }
    std::vector<size_t> order(inputs.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = (i * 7) % order.size();
    std::vector<Ids> shuffled;
    for (const size_t i : order) shuffled.push_back(inputs[i]);

    const EngineOptions variants[] = {
        {.threads = 1, .kv_memory_bytes = 8 << 20},
        {.threads = 2, .kv_memory_bytes = 8 << 20},
        {.threads = 1, .kv_memory_bytes = 8 << 20, .batch_tokens = 5},
        {.threads = 1, .kv_memory_bytes = 8 << 20, .max_sequences = 9},
        {.threads = 1, .kv_memory_bytes = 500'000, .batch_tokens = 64},  // requests make room
        {.threads = 1, .workers = 2, .kv_memory_bytes = 8 << 20},
        {.threads = 2, .workers = 3, .kv_memory_bytes = 8 << 20},
        {.threads = 1, .workers = 2, .kv_memory_bytes = 1'000'000, .batch_tokens = 64},
    };
    for (const EngineOptions& options : variants) {
      Engine engine(model_, options);
      EXPECT_EQ(run_all(engine, inputs, search), alone) << "beam " << beam;
      const std::vector<Output> mixed = run_all(engine, shuffled, search);
      for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(mixed[i], alone[order[i]]);
      const EngineStatistics s = engine.statistics();
      EXPECT_EQ(s.answered, static_cast<int64_t>(2 * inputs.size()));
    }
  }
}

TEST_P(EngineFamilyTest, SamplesDoNotDependOnWorkers) {
  const std::vector<Ids> inputs = random_inputs(20, 11);
  SearchOptions search;
  search.sample = true, search.max_new_tokens = 10, search.seed = 2;
  Engine one(model_, {.threads = 2}), many(model_, {.threads = 1, .workers = 4});
  EXPECT_EQ(one.run_ids(inputs, search), many.run_ids(inputs, search));
}

TEST_P(EngineFamilyTest, WorkIsDealtToAllWorkers) {
  Engine engine(model_, {.threads = 1, .workers = 3, .kv_memory_bytes = 9 << 20});
  Engine alone(model_, {.threads = 1, .kv_memory_bytes = 9 << 20});
  // Three batches of one instead of one of three.
  SearchOptions search;
  search.min_new_tokens = search.max_new_tokens = 20;
  const std::vector<Ids> inputs(3, Ids{5});
  const auto ticks = [&](Engine& by) {
    const int64_t before = by.statistics().ticks;
    by.run_ids(inputs, search);
    for (int i = 0; i < 1000 && by.statistics().running > 0; ++i) std::this_thread::sleep_for(1ms);
    return by.statistics().ticks - before;
  };
  EXPECT_EQ(ticks(alone), 20);
  EXPECT_EQ(ticks(engine), 60);
  EXPECT_LE(engine.statistics().kv_blocks, alone.statistics().kv_blocks);
}

TEST_P(EngineFamilyTest, WorkersAnswerAllOnDestruction) {
  std::vector<Handle> handles;
  {
    Engine engine(model_, {.threads = 1, .workers = 3, .kv_memory_bytes = 6 << 20});
    for (int i = 0; i < 50; ++i) handles.push_back(engine.submit({.ids = Ids{5, 6, 7}}));
  }
  for (const Handle& handle : handles) EXPECT_TRUE(handle.is_ready());
}

TEST_P(EngineFamilyTest, ScoresOnlyForThoseWhoWantThem) {
  Engine engine(model_, {.threads = 1, .kv_memory_bytes = 4 << 20});
  Engine silent(model_, {.threads = 1, .kv_memory_bytes = 4 << 20, .scores = false});
  SearchOptions search;
  search.max_new_tokens = 12;
  const auto answer = [&](Engine& by, std::optional<bool> scores) {
    return by.submit({.ids = Ids{9, 8, 7}, .search = search, .scores = scores}).get().best();
  };
  for (const int beam : {1, 3}) {
    search.beam = beam;
    const Answer scored = answer(engine, {});
    EXPECT_LT(scored.score, 0);
    EXPECT_EQ(answer(silent, true).score, scored.score);
    for (const Answer& plain : {answer(engine, false), answer(silent, {})}) {
      EXPECT_EQ(plain.ids, scored.ids);
      EXPECT_EQ(plain.score, beam == 1 ? 0 : scored.score);
    }
    search.token_scores = true;
    EXPECT_EQ(answer(silent, {}).token_scores, answer(engine, {}).token_scores);
    EXPECT_EQ(std::ssize(answer(silent, {}).token_scores), scored.new_tokens);
    search.token_scores = false;
  }
}

TEST_P(EngineFamilyTest, RequestsMakeRoomWhenMemoryIsShort) {
  const std::vector<Ids> inputs = random_inputs(30, 9);
  // Samples share nothing and all reach their length, so what they need does not depend on the
  // weights, as it would with beams.
  const SearchOptions search{
      .nbest = 4, .min_new_tokens = 40, .max_new_tokens = 40, .sample = true, .seed = 5};
  Engine roomy(model_, {.threads = 1, .kv_memory_bytes = 16 << 20});
  Engine tight(model_, {.threads = 1, .kv_memory_bytes = 500'000});
  EXPECT_EQ(run_all(tight, inputs, search), run_all(roomy, inputs, search));
  EXPECT_GT(tight.statistics().preemptions, 0);
  EXPECT_EQ(roomy.statistics().preemptions, 0);
}

TEST_P(EngineFamilyTest, MemoryIsGivenBack) {
  Engine engine(model_, {.threads = 1, .kv_memory_bytes = 4 << 20});
  run_all(engine, random_inputs(20, 3), beam_of(3, 10));
  for (int i = 0; i < 1000 && engine.statistics().running > 0; ++i)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(engine.statistics().kv_blocks_used, 0);
}

TEST_P(EngineFamilyTest, SamplesDependOnSeedAndStreamAlone) {
  SearchOptions search;
  search.sample = true, search.nbest = 3, search.max_new_tokens = 12, search.seed = 5;
  Engine engine(model_, {.threads = 2, .kv_memory_bytes = 4 << 20});
  const auto sample = [&](uint64_t seed, uint64_t stream) {
    search.seed = seed;
    return output_of(
        engine.submit({.ids = Ids{9, 8, 7}, .search = search, .stream = stream}).get());
  };
  const Output first = sample(5, 0);
  ASSERT_EQ(first.ids.size(), 3u);
  EXPECT_NE(first.ids[0], first.ids[1]);
  EXPECT_EQ(sample(5, 0), first);
  EXPECT_NE(sample(6, 0), first);
  EXPECT_NE(sample(5, 1), first);
}

TEST_P(EngineFamilyTest, StreamsWhatTheResultHas) {
  Engine engine(model_, {.threads = 1, .kv_memory_bytes = 4 << 20});
  Ids ids;
  std::string text;
  std::atomic<int> done = 0;
  SearchOptions search;
  search.max_new_tokens = 15;
  const Callbacks callbacks{.piece =
                                [&](const StreamPiece& piece) {
                                  ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
                                  text += piece.text;
                                },
                            .done = [&] { ++done; }};
  const Handle handle = engine.submit({.text = "Hello", .search = search}, callbacks);
  const Result result = handle.get();
  const Answer& answer = result.best();
  EXPECT_EQ(ids, Ids(answer.ids.end() - answer.new_tokens, answer.ids.end()));
  EXPECT_EQ(text, answer.text);
  for (int i = 0; i < 1000 && done == 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(done, 1);
}

TEST_P(EngineFamilyTest, ACallbackThatThrowsEndsItsRequestAlone) {
  Engine engine(model_, {.threads = 1, .kv_memory_bytes = 4 << 20});
  const Callbacks angry{
      .piece = [](const StreamPiece&) { throw Error(ErrorCode::invalid_argument, "enough"); }};
  const Handle bad = engine.submit({.ids = Ids{5, 6}}, angry);
  const Handle good = engine.submit({.ids = Ids{5, 6}});
  EXPECT_EQ(code_of([&] { bad.get(); }), ErrorCode::invalid_argument);
  EXPECT_FALSE(good.get().answers.empty());
}

TEST_P(EngineFamilyTest, CancelAndDeadline) {
  Engine engine(model_, {.threads = 1, .kv_memory_bytes = 4 << 20});
  SearchOptions search;
  search.max_new_tokens = 80, search.min_new_tokens = 80;
  const Handle late = engine.submit(
      {.ids = Ids{5}, .search = search, .deadline = std::chrono::steady_clock::now() - 1s});
  EXPECT_EQ(code_of([&] { late.get(); }), ErrorCode::cancelled);
  std::atomic<bool> begun{false};
  std::optional<Handle> handle;
  // Cancelled from within, so that it is certainly under way.
  std::mutex mutex;
  std::unique_lock lock(mutex);
  handle = engine.submit({.ids = Ids{5}, .search = search}, {.piece = [&](const StreamPiece&) {
                           const std::lock_guard wait(mutex);
                           begun = true;
                           handle->cancel();
                         }});
  lock.unlock();
  EXPECT_EQ(code_of([&] { handle->get(); }), ErrorCode::cancelled);
  EXPECT_TRUE(begun);
}

TEST_P(EngineFamilyTest, ARunOfManyCanBeCancelled) {
  Engine engine(model_, {.threads = 1});
  std::vector<Request> requests;
  for (const Ids& ids : random_inputs(300, 5)) {
    requests.push_back({.ids = ids, .search = beam_of(4, 50)});
  }
  size_t given = 0;
  const auto code = code_of([&] {
    engine.run(
        std::move(requests), [&](size_t, Result&&) { ++given; }, [] { return true; });
  });
  EXPECT_EQ(code, ErrorCode::cancelled);
  EXPECT_LT(given, 300U);
  // The engine lives on.
  EXPECT_EQ(engine.submit({.ids = Ids{5, 6}}).get().answers.size(), 1U);
}

TEST_P(EngineFamilyTest, DestructionAnswersEverything) {
  std::vector<Handle> handles;
  {
    Engine engine(model_, {.threads = 1, .kv_memory_bytes = 4 << 20});
    for (int i = 0; i < 50; ++i) handles.push_back(engine.submit({.ids = Ids{5, 6, 7}}));
  }
  for (const Handle& handle : handles) EXPECT_TRUE(handle.is_ready());
}

// Chains, each answer of which asks for more; when the engine goes, of a worker that may have gone.
TEST_P(EngineFamilyTest, DestructionRefusesWhatCallbacksSubmit) {
  for (const int workers : {1, 3}) {
    std::mutex mutex;
    std::vector<Handle> late;
    int refused = 0;
    std::function<void()> submit_more;
    {
      Engine engine(model_, {.threads = 1, .workers = workers, .kv_memory_bytes = 6 << 20});
      submit_more = [&] {
        const std::lock_guard lock(mutex);
        try {
          late.push_back(engine.submit({.ids = Ids{5}}, {.done = submit_more}));
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::cancelled);
          ++refused;
        }
      };
      for (int i = 0; i < 9; ++i) submit_more();
    }
    EXPECT_EQ(refused, 9);  // the last of each chain
    for (const Handle& handle : late) EXPECT_TRUE(handle.is_ready());
  }
}

TEST_P(EngineFamilyTest, RefusesWhatMakesNoSense) {
  Engine engine(model_, {.threads = 1, .kv_memory_bytes = 4 << 20});
  const auto submit = [&](Request request) { return code_of([&] { engine.submit(request); }); };
  EXPECT_EQ(submit({.ids = Ids{}}), ErrorCode::invalid_argument);
  EXPECT_EQ(submit({.ids = Ids{384}}), ErrorCode::invalid_argument);
  EXPECT_EQ(submit({.ids = Ids{-1}}), ErrorCode::invalid_argument);
  EXPECT_EQ(submit({.ids = Ids(200, 5)}), ErrorCode::invalid_argument);
  EXPECT_EQ(submit({.ids = Ids{5}, .prefix_ids = {999}}), ErrorCode::invalid_argument);
  SearchOptions o;
  o.min_new_tokens = 9, o.max_new_tokens = 8;
  EXPECT_EQ(submit({.ids = Ids{5}, .search = o}), ErrorCode::invalid_argument);
  o = {};
  o.beam = 2, o.sample = true;
  EXPECT_EQ(submit({.ids = Ids{5}, .search = o}), ErrorCode::invalid_argument);
  o = {};
  o.beam = 512;
  EXPECT_EQ(submit({.ids = Ids{5}, .search = o}), ErrorCode::out_of_memory);
  // And lives on.
  EXPECT_FALSE(engine.submit({.ids = Ids{5}}).get().answers.empty());
}

TEST_P(EngineFamilyTest, APrefixBeginsTheAnswer) {
  Engine engine(model_, {.threads = 1, .kv_memory_bytes = 4 << 20});
  for (const int beam : {1, 3}) {
    const Result result =
        engine.submit({.ids = Ids{50, 51}, .prefix_ids = {70, 71, 72}, .search = beam_of(beam, 5)})
            .get();
    const Ids& ids = result.best().ids;
    const Ids prefix{70, 71, 72};
    EXPECT_NE(std::search(ids.begin(), ids.end(), prefix.begin(), prefix.end()), ids.end());
    EXPECT_EQ(static_cast<int64_t>(ids.size()) - result.best().new_tokens,
              GetParam() == Family::decoder_only ? 5 : 4);
  }
}

TEST_P(EngineFamilyTest, AStopTextEndsTheTextBeforeIt) {
  Engine engine(model_, {.threads = 1, .kv_memory_bytes = 4 << 20});
  SearchOptions search;
  search.max_new_tokens = 60, search.min_new_tokens = 60;
  search.no_repeat_ngram = 1;  // or it would be one byte again and again
  search.banned_ids = all_but_bytes();
  const Answer whole = engine.submit({.text = "abc", .search = search}).get().best();
  ASSERT_GT(whole.text.size(), 6u);
  search.stop = {whole.text.substr(3, 2)};
  const Result stopped = engine.submit({.text = "abc", .search = search}).get();
  EXPECT_EQ(stopped.best().finish, FinishReason::stop);
  EXPECT_LT(stopped.best().new_tokens, whole.new_tokens);
  EXPECT_EQ(stopped.best().text, whole.text.substr(0, whole.text.find(search.stop[0])));
}

// Many threads submit and cancel at random: everything is answered exactly once.
class EngineWorkersTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, EngineWorkersTest, testing::Values(1, 2));

TEST_P(EngineWorkersTest, ThousandsOfRequestsAtOnce) {
  constexpr int kEach = 2500;
  constexpr int kThreads = 4;
  const Model model = tiny_model(Family::encoder_decoder);
  Engine engine(model, {.threads = 1, .workers = GetParam(), .kv_memory_bytes = 4 << 20});
  std::atomic<int> done{0}, answered{0}, cancelled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Handle> handles;
      for (int i = 0; i < kEach; ++i) {
        const uint32_t draw = random_block({.seed = 4, .step = static_cast<uint32_t>(t), .site = 2},
                                           static_cast<uint64_t>(i))[0];
        SearchOptions search;
        search.max_new_tokens = 1 + draw % 4;
        search.beam = 1 + static_cast<int>(draw / 16 % 2);
        handles.push_back(engine.submit({.ids = Ids(1 + draw / 64 % 6, 9), .search = search},
                                        {.done = [&] { ++done; }}));
        if (draw % 3 == 0) handles[draw / 7 % handles.size()].cancel();
      }
      for (const Handle& handle : handles) {
        try {
          answered += handle.get().answers.empty() ? 0 : 1;
        } catch (const Error& error) {
          cancelled += error.code() == ErrorCode::cancelled ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered + cancelled, kThreads * kEach);
  EXPECT_GT(answered, 0);
  EXPECT_GT(cancelled, 0);
  for (int i = 0; i < 5000 && engine.statistics().kv_blocks_used > 0; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(done, kThreads * kEach);
  EXPECT_EQ(engine.statistics().kv_blocks_used, 0);
}

// Parts of a prompt that have the same number of rows, and more keys each.
TEST(Engine, ALongPromptInPartsIsTheSameOnAnyNumberOfThreads) {
  ModelConfig config = tiny_config(Family::decoder_only);
  config.width = 64, config.heads = 1, config.max_positions = 512;
  const Model model(std::make_shared<const Network>(config, 1), make_tokenizer("byte"));
  Ids prompt;
  for (int32_t i = 0; i < 250; ++i) prompt.push_back(3 + i * 7 % 250);
  const auto answer = [&](int threads, int64_t batch_tokens) {
    Engine engine(model, {.threads = threads, .batch_tokens = batch_tokens});
    return engine.submit({.ids = prompt, .search = beam_of(1, 5)}).get().best().ids;
  };
  const Ids whole = answer(1, 1024);
  for (const int threads : {1, 4}) EXPECT_EQ(answer(threads, 64), whole);
}

TEST(Engine, AModelThatDoesNotGenerateIsRefused) {
  ModelConfig config = tiny_config(Family::encoder_only);
  config.head = Head::masked_lm;
  const Model model(std::make_shared<const Network>(config), nullptr);
  EXPECT_EQ(code_of([&] { Engine engine(model); }), ErrorCode::unsupported);
}

TEST(Engine, WorkersAreAtLeastOne) {
  const Model model = tiny_model(Family::decoder_only);
  for (const int workers : {0, -1, 5000}) {
    EXPECT_EQ(code_of([&] { Engine engine(model, {.workers = workers}); }),
              ErrorCode::invalid_argument);
  }
}

// Each has a share of the memory alone, and a request that is too much for it.
TEST(Engine, TooLargeARequestForItsWorkerIsToldWhy) {
  for (const int workers : {1, 3}) {
    Engine engine(tiny_model(Family::decoder_only),
                  {.threads = 1, .workers = workers, .kv_memory_bytes = 4 << 20});
    try {
      engine.submit({.ids = Ids{5}, .search = beam_of(512, 20)});
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
      EXPECT_EQ(error.hint().find("fewer workers") != std::string::npos, workers > 1);
    }
  }
}

// Where the system has room for some of them only: an error that says so, and none is left behind.
TEST(Engine, TooManyWorkersAreTooMuchAndNoBug) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs more memory than there is here";
  const Model model = tiny_model(Family::decoder_only);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit little = before;
  little.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (400 << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  std::string message, hint;
  try {
    const Engine engine(model, {.threads = 1, .workers = 1000});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    message = error.what(), hint = error.hint();
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(message, testing::HasSubstr("cannot start 1000 worker"));
  EXPECT_THAT(hint, testing::HasSubstr("fewer workers"));
  // And there is room again.
  EXPECT_EQ(Engine(model, {.threads = 1, .workers = 2}).run_ids({{5}}, {}).size(), size_t{1});
}

TEST(Engine, AlignmentsNameSpansOfBothTexts) {
  Engine engine(tiny_model(Family::encoder_decoder), {.threads = 1, .kv_memory_bytes = 4 << 20});
  SearchOptions search = beam_of(2, 12);
  search.alignments = true, search.min_new_tokens = 8;
  search.banned_ids = all_but_bytes();
  const std::string source = "one two";
  const Result result = engine.submit({.text = source, .search = search}).get();
  for (const Answer& answer : result.answers) {
    for (const Alignment& a : answer.alignments) {
      EXPECT_LT(a.source.begin, a.source.end);
      EXPECT_LE(a.source.end, static_cast<int64_t>(source.size()));
      EXPECT_LT(a.target.begin, a.target.end);
      EXPECT_LE(a.target.end, static_cast<int64_t>(answer.text.size()));
      EXPECT_GT(a.weight, 0);
      EXPECT_LE(a.weight, 1.0001);
    }
  }
  EXPECT_FALSE(result.best().alignments.empty());
}

TEST(Engine, TooLongASourceIsCutOnlyIfItMayBe) {
  Engine engine(tiny_model(Family::encoder_decoder), {.threads = 1, .kv_memory_bytes = 4 << 20});
  const std::string text(500, 'x');
  EXPECT_EQ(code_of([&] { engine.submit({.text = text}); }), ErrorCode::invalid_argument);
  SearchOptions search;
  search.max_new_tokens = 3;
  const Result result =
      engine.submit({.text = text, .search = search, .truncate = Truncation::right}).get();
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.input_tokens, 501);
}

// Also with positions that could go on, such as RoPE: beyond its context a model writes nonsense.
TEST(Engine, TooLongAPromptIsCutOnlyIfItMayBe) {
  for (const Position position : {Position::learned, Position::rope}) {
    ModelConfig config = tiny_config(Family::decoder_only);
    config.position = position;
    const Model model(std::make_shared<const Network>(config, 1),
                      tiny_model(Family::decoder_only).tokenizer_pointer());
    Engine engine(model, {.threads = 1, .kv_memory_bytes = 4 << 20});
    const auto context = static_cast<size_t>(model.context_length());
    const std::string text = std::string(context, 'x') + "yz";
    try {
      engine.submit({.text = text});
      ADD_FAILURE() << "was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(),
                  testing::HasSubstr("at most " + std::to_string(context) + " tokens"));
    }
    SearchOptions search;
    search.max_new_tokens = 3;
    const auto run = [&](const std::string& prompt, Truncation truncate) {
      return engine.submit({.text = prompt, .search = search, .truncate = truncate}).get();
    };
    const Result left = run(text, Truncation::left), right = run(text, Truncation::right);
    EXPECT_TRUE(left.truncated && right.truncated);
    EXPECT_EQ(left.best().ids, run(text.substr(5), Truncation::no).best().ids);
    EXPECT_EQ(right.best().ids, run(text.substr(0, context - 3), Truncation::no).best().ids);
    // And an answer ends where the context does.
    search.max_new_tokens = 100;
    const Result full = run(text.substr(0, context - 2), Truncation::no);
    EXPECT_FALSE(full.truncated);
    EXPECT_EQ(full.best().new_tokens, 3);
    EXPECT_EQ(full.best().finish, FinishReason::length);
  }
}

}  // namespace
}  // namespace heed
