#include "train/run/step.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "heed/error.h"
#include "train/ranks/gradient_exchange.h"

namespace heed {
namespace {

Batch batch_of(const Rows& rows) {
  return {.tokens = rows.tokens,
          .positions = rows.positions,
          .token_types = rows.token_types,
          .offsets = rows.offsets};
}

bool reads_vocabulary(const ModelConfig& config) {
  return config.head == Head::language_model || config.head == Head::masked_lm;
}

// Each batch of a step draws from streams of its own; no pass has this many sites.
constexpr uint32_t kSitesPerPart = 1 << 20;

// Logits that evaluation holds at a time.
constexpr int64_t kJudgedLogits = 4 << 20;

// Arenas grow by more than was asked for, so that batches of slowly growing length do not map new
// memory at every step. Pages that are never touched cost nothing.
constexpr double kGrowth = 1.25;

// 1 where the largest logit is the label's, for rows that have a label.
int64_t count_correct(const Mat& logits, std::span<const int32_t> labels) {
  int64_t correct = 0;
  for (int64_t r = 0; r < logits.rows; ++r) {
    const int32_t label = labels[static_cast<size_t>(r)];
    if (label == kIgnoreLabel) continue;
    const float* row = logits.row(r);
    correct += std::max_element(row, row + logits.cols) - row == label;
  }
  return correct;
}

int64_t count_asked(std::span<const int32_t> labels) {
  return std::ranges::count_if(labels, [](int32_t label) { return label != kIgnoreLabel; });
}

void append(std::vector<int32_t>& list, const std::vector<int32_t>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

float scale_of(double weight, int64_t count) {
  return count > 0 ? static_cast<float>(weight / static_cast<double>(count)) : 0;
}

}  // namespace

bool has_dropout(const ModelConfig& config) {
  return std::max({config.dropout, config.embedding_dropout, config.attention_dropout,
                   config.activation_dropout}) > 0;
}

LabelCounts& LabelCounts::operator+=(const LabelCounts& other) {
  labels += other.labels, sequences += other.sequences, rows += other.rows;
  return *this;
}

LabelCounts count_labels(const TrainingBatch& batch) {
  LabelCounts counts;
  counts.labels = count_asked(batch.labels);
  counts.sequences = !batch.scores.empty()          ? static_cast<int64_t>(batch.scores.size())
                     : !batch.next_sentence.empty() ? count_asked(batch.next_sentence)
                                                    : count_asked(batch.sequence_labels);
  counts.rows = batch.target.empty() ? batch.input.rows() : batch.target.rows();
  return counts;
}

std::string_view name(LossKind kind) {
  switch (kind) {
    case LossKind::labels:
      return "labels";
    case LossKind::classes:
      return "classes";
    case LossKind::scores:
      return "scores";
    case LossKind::next_sentence:
      return "next_sentence";
    case LossKind::soft_targets:
      return "soft_targets";
    case LossKind::cosine:
      return "cosine";
    case LossKind::twins:
      return "twins";
  }
  return "?";
}

double StepLoss::loss() const {
  double total = 0;
  for (const LossPart& part : parts) total += part.weight * part.mean();
  return total;
}

StepLoss& StepLoss::operator+=(const StepLoss& other) {
  for (const LossPart& part : other.parts) {
    const auto mine = std::ranges::find(parts, part.kind, &LossPart::kind);
    if (mine == parts.end()) {
      parts.push_back(part);
    } else {
      mine->sum += part.sum, mine->count += part.count;
    }
  }
  return *this;
}

Evaluation& Evaluation::operator+=(const Evaluation& e) {
  loss += e.loss;
  correct += e.correct, judged += e.judged;
  n += e.n, x += e.x, y += e.y, xx += e.xx, yy += e.yy, xy += e.xy;
  return *this;
}

std::optional<double> Evaluation::accuracy() const {
  if (judged == 0) return std::nullopt;
  return static_cast<double>(correct) / static_cast<double>(judged);
}

std::optional<double> Evaluation::pearson() const {
  const double vx = n * xx - x * x, vy = n * yy - y * y;
  if (n < 2 || vx <= 0 || vy <= 0) return std::nullopt;
  return (n * xy - x * y) / std::sqrt(vx * vy);
}

StepRunner::StepRunner(const Options& options) : o_(options) {
  if (o_.teacher) check_teacher();
  if (o_.loss.r_drop > 0) check_twins();
}

void StepRunner::check_teacher() const {
  const ModelConfig &student = o_.network.config(), &teacher = o_.teacher->config();
  std::string problem;
  if (student.family != teacher.family) {
    problem = "the student is " + std::string(name_of(student.family)) + ", the teacher " +
              std::string(name_of(teacher.family));
  } else if (!reads_vocabulary(student) || !reads_vocabulary(teacher)) {
    problem = "both must have a language model's head";
  } else if (student.output_vocabulary() != teacher.output_vocabulary()) {
    problem = "the student's vocabulary has " + std::to_string(student.output_vocabulary()) +
              " ids, the teacher's " + std::to_string(teacher.output_vocabulary());
  } else if (o_.loss.cosine_weight > 0 && student.width != teacher.width) {
    problem = "width " + std::to_string(student.width) + " and " + std::to_string(teacher.width) +
              " have no cosine: set objective.cosine_weight = 0";
  }
  if (!problem.empty()) {
    throw Error(ErrorCode::invalid_argument, "this teacher cannot teach this model: " + problem,
                "choose a student of the teacher's family and vocabulary");
  }
}

void StepRunner::check_twins() const {
  const ModelConfig& c = o_.network.config();
  const char* problem = nullptr;
  if (o_.teacher) {
    problem = "it has a teacher to follow already";
  } else if (!reads_vocabulary(c)) {
    problem = "it does not answer with words";
  } else if (c.logits_soft_cap > 0) {
    problem = "its logits have a soft cap";
  } else if (!has_dropout(c)) {
    problem = "without dropout it reads a text the same way twice";
  }
  if (problem) {
    throw Error(ErrorCode::invalid_argument,
                "objective.r_drop is not for this training: " + std::string(problem),
                "leave r_drop out");
  }
}

// A batch as a step reads it: with R-Drop every sequence twice, the second ones after all the
// first.
const TrainingBatch& StepRunner::as_read(const TrainingBatch& batch) {
  if (o_.loss.r_drop == 0) return batch;
  twins_ = batch;
  for (auto [rows, once] :
       {std::pair{&twins_.input, &batch.input}, {&twins_.target, &batch.target}}) {
    append(rows->tokens, once->tokens);
    append(rows->positions, once->positions);
    append(rows->token_types, once->token_types);
    for (size_t s = 1; s < once->offsets.size(); ++s) {
      rows->offsets.push_back(once->offsets.back() + once->offsets[s]);
    }
  }
  append(twins_.labels, batch.labels);
  append(twins_.next_sentence, batch.next_sentence);
  return twins_;
}

StepRunner::View StepRunner::view(const TrainingBatch& batch) const {
  return {batch_of(batch.input), batch_of(batch.target)};
}

Var StepRunner::hidden(Ctx& ctx, const Network& network, const View& view) const {
  return network.transformer().hidden(ctx, {.source = view.input, .target = view.target});
}

// Cross-entropy of each row's label; with a teacher also its soft targets and hidden states.
StepLoss StepRunner::row_losses(Ctx& ctx, Var hidden, const TrainingBatch& batch, const View& view,
                                const LabelCounts& counts) {
  const Transformer& t = o_.network.transformer();
  const float soft_cap = o_.network.config().logits_soft_cap;
  StepLoss loss;
  if (!o_.teacher) {
    // Where few rows have a label (masked language models), only those meet the output matrix.
    labels_ = batch.labels;
    if (2 * count_asked(labels_) < hidden.rows()) {
      labelled_rows_.clear(), labels_.clear();
      for (size_t r = 0; r < batch.labels.size(); ++r) {
        if (batch.labels[r] == kIgnoreLabel) continue;
        labelled_rows_.push_back(static_cast<int32_t>(r));
        labels_.push_back(batch.labels[r]);
      }
      hidden = take_rows(ctx, hidden, labelled_rows_);
    }
    if (o_.loss.r_drop > 0) {
      const OutputProjection own = t.output_projection(ctx, hidden);
      const TwinLoss twins =
          vocabulary_twin_cross_entropy(ctx, own.x, own.output, labels_, o_.loss.r_drop,
                                        {.label_smoothing = o_.loss.label_smoothing,
                                         .gradient_scale = scale_of(1, counts.labels)});
      loss.parts.push_back({LossKind::labels, 1, twins.labels.sum, twins.labels.count});
      loss.parts.push_back(
          {LossKind::twins, o_.loss.r_drop / 2, twins.divergence.sum, twins.divergence.count});
      return loss;
    }
    const LossSum sum = t.token_loss(
        ctx, hidden, labels_,
        {.label_smoothing = o_.loss.label_smoothing, .gradient_scale = scale_of(1, counts.labels)});
    loss.parts.push_back({LossKind::labels, 1, sum.sum, sum.count});
    return loss;
  }
  // The teacher only answers; its memory stays in the arena until the step ends.
  Ctx asking{ctx.pool, ctx.arena};
  const Var teacher_hidden = this->hidden(asking, *o_.teacher, view);
  const OutputProjection taught =
      o_.teacher->transformer().output_projection(asking, teacher_hidden);
  const OutputProjection own = t.output_projection(ctx, hidden);
  const LossSum soft =
      vocabulary_kl_divergence(ctx, own.x, own.output, {taught.x.value, taught.output},
                               {.temperature = o_.loss.temperature,
                                .gradient_scale = scale_of(o_.loss.soft_weight, counts.rows)});
  loss.parts.push_back({LossKind::soft_targets, o_.loss.soft_weight, soft.sum, soft.count});
  if (o_.loss.label_weight > 0) {
    const LossSum sum =
        vocabulary_cross_entropy(ctx, own.x, own.output, batch.labels,
                                 {.label_smoothing = o_.loss.label_smoothing,
                                  .soft_cap = soft_cap,
                                  .gradient_scale = scale_of(o_.loss.label_weight, counts.labels)});
    loss.parts.push_back({LossKind::labels, o_.loss.label_weight, sum.sum, sum.count});
  }
  if (o_.loss.cosine_weight > 0) {
    const LossSum sum = cosine_distance(ctx, hidden, teacher_hidden.value,
                                        scale_of(o_.loss.cosine_weight, counts.rows));
    loss.parts.push_back({LossKind::cosine, o_.loss.cosine_weight, sum.sum, sum.count});
  }
  return loss;
}

StepLoss StepRunner::forward(Ctx& ctx, const TrainingBatch& batch, const View& view,
                             const LabelCounts& counts) {
  const Transformer& t = o_.network.transformer();
  const Var rows = hidden(ctx, o_.network, view);
  StepLoss loss;
  if (!batch.scores.empty()) {
    const Var scores = t.classify(ctx, rows, view.predicted());
    const ConstMat truth(batch.scores.data(), scores.rows(), scores.cols());
    const LossSum sum = squared_error(ctx, scores, truth, scale_of(1, counts.sequences));
    loss.parts.push_back({LossKind::scores, 1, sum.sum, sum.count});
  } else if (!batch.sequence_labels.empty()) {
    const LossSum sum =
        cross_entropy(ctx, t.classify(ctx, rows, view.predicted()), batch.sequence_labels,
                      {.label_smoothing = o_.loss.label_smoothing,
                       .gradient_scale = scale_of(1, counts.sequences)});
    loss.parts.push_back({LossKind::classes, 1, sum.sum, sum.count});
  } else if (!reads_vocabulary(o_.network.config())) {  // tagging
    const LossSum sum = cross_entropy(
        ctx, t.classify(ctx, rows, view.predicted()), batch.labels,
        {.label_smoothing = o_.loss.label_smoothing, .gradient_scale = scale_of(1, counts.labels)});
    loss.parts.push_back({LossKind::labels, 1, sum.sum, sum.count});
  } else {
    loss = row_losses(ctx, rows, batch, view, counts);
  }
  if (!batch.next_sentence.empty()) {
    const LossSum sum =
        cross_entropy(ctx, t.next_sentence(ctx, rows, view.input), batch.next_sentence,
                      {.gradient_scale = scale_of(1, counts.sequences)});
    loss.parts.push_back({LossKind::next_sentence, 1, sum.sum, sum.count});
  }
  return loss;
}

size_t StepRunner::training_bytes(const TrainingBatch& batch) {
  const TrainingBatch& read = as_read(batch);
  return planned_bytes(read, count_labels(read));
}

size_t StepRunner::measure(const TrainingBatch& batch, const LabelCounts& counts,
                           const std::function<void()>& after_each) {
  for (WeightGradient& slot : o_.network.parameters().gradients()) slot.arrived = 0;
  if (GradientPool* pool = o_.network.parameters().gradient_pool()) pool->measure();
  const View v = view(batch);
  Arena plan = Arena::measuring();
  Ctx ctx{o_.pool, plan, &tape_};
  try {
    forward(ctx, batch, v, counts);
    tape_.backward(ctx, after_each);
  } catch (...) {
    tape_.clear();
    o_.network.parameters().abandon_gradients();
    throw;
  }
  o_.network.parameters().abandon_gradients();
  return plan.peak_bytes();
}

size_t StepRunner::planned_bytes(const TrainingBatch& batch, const LabelCounts& counts) {
  Parameters& p = o_.network.parameters();
  const size_t activations = measure(batch, counts, {});
  p.plan_gradients();
  if (!p.gradient_pool()) return activations;
  // When a gradient is final, and so can be given back, is known only now.
  measure(batch, counts, [&p] { p.use_final_gradients({}); });
  return activations + p.gradient_pool()->bytes();
}

void StepRunner::release_memory() {
  arena_ = Arena(0);
  if (GradientPool* pool = o_.network.parameters().gradient_pool()) pool->free_memory();
}

void StepRunner::reserve(size_t bytes) {
  if (bytes <= arena_.capacity_bytes()) return;
  arena_ = Arena(0);  // give the old one back first
  arena_ = Arena(static_cast<size_t>(kGrowth * static_cast<double>(bytes)));
}

StepLoss StepRunner::train(const TrainingBatch& once, const LabelCounts& counts_once,
                           const Place& place, const GradientOutlet& outlet) {
  HEED_CHECK(place.part >= 0 && place.part < kMostBatches, "too many batches in one step");
  Parameters& p = o_.network.parameters();
  HEED_CHECK(!p.gradient_pool() || !outlet.exchange, "an exchange of gradients that are not kept");
  HEED_CHECK(p.gradient_pool() || !outlet.use, "gradients that are kept are used after backward");
  const TrainingBatch& batch = as_read(once);
  LabelCounts counts = counts_once;
  if (&batch != &once) counts += counts_once;
  const size_t bytes = planned_bytes(batch, counts);
  reserve(bytes - (p.gradient_pool() ? p.gradient_pool()->bytes() : 0));
  if (p.gradient_pool()) p.gradient_pool()->provide();
  for (WeightGradient& slot : p.gradients()) slot.arrived = 0;
  std::function<void()> after_each;
  if (outlet.exchange) {
    outlet.exchange->begin();
    after_each = [&] { outlet.exchange->advance(); };
  } else if (p.gradient_pool()) {
    after_each = [&] { p.use_final_gradients(outlet.use); };
  }
  const View v = view(batch);
  Ctx ctx{o_.pool,
          arena_,
          &tape_,
          place.seed,
          static_cast<uint32_t>(place.step),
          static_cast<uint32_t>(place.part) * kSitesPerPart};
  const Arena::Mark mark = arena_.mark();
  StepLoss loss;
  try {
    const Clock::time_point start = Clock::now();
    loss = forward(ctx, batch, v, counts);
    times_.forward_seconds = seconds_since(start);
    tape_.backward(ctx, after_each);
    if (p.gradient_pool()) p.use_final_gradients(outlet.use);
    times_.backward_seconds = seconds_since(start) - times_.forward_seconds;
  } catch (...) {
    tape_.clear();
    o_.network.parameters().abandon_gradients();
    arena_.rewind(mark);
    throw;
  }
  arena_.rewind(mark);
  return loss;
}

// Logits tile by tile: as in training, those of the whole batch never exist.
Evaluation StepRunner::judge_rows(Ctx& ctx, Var hidden, std::span<const int32_t> labels) {
  const Transformer& t = o_.network.transformer();
  const int64_t tile =
      std::max<int64_t>(kJudgedLogits / o_.network.config().output_vocabulary(), 16);
  Evaluation result;
  LossPart part{LossKind::labels};
  for (int64_t begin = 0; begin < hidden.rows(); begin += tile) {
    const int64_t rows = std::min(tile, hidden.rows() - begin);
    const std::span<const int32_t> asked =
        labels.subspan(static_cast<size_t>(begin), static_cast<size_t>(rows));
    const Arena::Mark mark = ctx.arena.mark();
    const Mat& h = hidden.value;
    const Var slice{Mat(h.data ? h.row(begin) : nullptr, rows, h.cols, h.stride)};
    const Var logits = t.logits(ctx, slice);
    const LossSum sum = cross_entropy(ctx, logits, asked, {});
    part.sum += sum.sum, part.count += sum.count;
    if (!ctx.measuring()) result.correct += count_correct(logits.value, asked);
    ctx.arena.rewind(mark);
  }
  result.judged = part.count;
  result.loss.parts.push_back(part);
  return result;
}

Evaluation StepRunner::judge(Ctx& ctx, const TrainingBatch& batch, const View& view) {
  const Transformer& t = o_.network.transformer();
  Var rows = hidden(ctx, o_.network, view);
  rows.value_kept = true;
  Evaluation result;
  if (!batch.scores.empty()) {
    const Var scores = t.classify(ctx, rows, view.predicted());
    const ConstMat truth(batch.scores.data(), scores.rows(), scores.cols());
    const LossSum sum = squared_error(ctx, scores, truth, 1);
    result.loss.parts.push_back({LossKind::scores, 1, sum.sum, sum.count});
    for (int64_t r = 0; !ctx.measuring() && r < scores.rows(); ++r) {
      const double x = scores.value.row(r)[0], y = truth.row(r)[0];
      result.n += 1, result.x += x, result.y += y;
      result.xx += x * x, result.yy += y * y, result.xy += x * y;
    }
    return result;
  }
  if (!batch.sequence_labels.empty() || !reads_vocabulary(o_.network.config())) {
    const bool classes = !batch.sequence_labels.empty();
    const std::vector<int32_t>& labels = classes ? batch.sequence_labels : batch.labels;
    const Var logits = t.classify(ctx, rows, view.predicted());
    const LossSum sum = cross_entropy(ctx, logits, labels, {});
    result.loss.parts.push_back(
        {classes ? LossKind::classes : LossKind::labels, 1, sum.sum, sum.count});
    result.judged = sum.count;
    if (!ctx.measuring()) result.correct = count_correct(logits.value, labels);
    return result;
  }
  std::vector<int32_t> asked_rows, labels;
  for (size_t r = 0; r < batch.labels.size(); ++r) {
    if (batch.labels[r] == kIgnoreLabel) continue;
    asked_rows.push_back(static_cast<int32_t>(r));
    labels.push_back(batch.labels[r]);
  }
  result = judge_rows(ctx, take_rows(ctx, rows, asked_rows), labels);
  if (!batch.next_sentence.empty()) {
    const Var logits = t.next_sentence(ctx, rows, view.input);
    const LossSum sum = cross_entropy(ctx, logits, batch.next_sentence, {});
    result.loss.parts.push_back({LossKind::next_sentence, 1, sum.sum, sum.count});
  }
  return result;
}

size_t StepRunner::evaluation_bytes(const TrainingBatch& batch) {
  Arena plan = Arena::measuring();
  Ctx ctx{o_.pool, plan};
  judge(ctx, batch, view(batch));
  return plan.peak_bytes();
}

Evaluation StepRunner::evaluate(const TrainingBatch& batch) {
  reserve(evaluation_bytes(batch));
  const View v = view(batch);
  Ctx ctx{o_.pool, arena_};
  const Arena::Mark mark = arena_.mark();
  try {
    Evaluation result = judge(ctx, batch, v);
    arena_.rewind(mark);
    return result;
  } catch (...) {
    arena_.rewind(mark);
    throw;
  }
}

}  // namespace heed
