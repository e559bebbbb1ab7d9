// Word alignment: the source token that each new token of an answer attends to most.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heed/engine.h"
#include "ops/ctx.h"

namespace heed {

// Calls work(ctx) with a measuring context, then to compute: Scheduler::run().
using RunInArena = std::function<void(const std::function<void(Ctx& ctx)>& work)>;

// Alignments of the last `answer.new_tokens` ids. `source_spans` are the spans of the source tokens;
// empty: the source was raw ids. Runs the encoder and the decoder once.
std::vector<Alignment> align_words(const Model& model, std::span<const int32_t> source,
                                   std::span<const TextSpan> source_spans, const Answer& answer,
                                   const RunInArena& run);

}  // namespace heed
