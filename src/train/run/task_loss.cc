#include "train/run/task_loss.h"

#include <algorithm>
#include <string>

#include "base/ignore_label.h"
#include "heed/error.h"

namespace heed {
namespace {

// Logits that evaluation holds at a time.
constexpr int64_t kEvaluationLogits = 4 << 20;

Batch batch_of(const Rows& rows) {
  return {.tokens = rows.tokens,
          .positions = rows.positions,
          .token_types = rows.token_types,
          .offsets = rows.offsets};
}

// Rows whose label has the largest logit.
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

void select_labelled(std::span<const int32_t> all, std::vector<int32_t>& rows,
                     std::vector<int32_t>& labels) {
  rows.clear(), labels.clear();
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r] == kIgnoreLabel) continue;
    rows.push_back(static_cast<int32_t>(r));
    labels.push_back(all[r]);
  }
}

float scale_of(double weight, int64_t count) {
  return count > 0 ? static_cast<float>(weight / static_cast<double>(count)) : 0;
}

}  // namespace

TaskLoss::TaskLoss(const Options& options) : o_(options) {
  if (o_.teacher) check_teacher();
  if (o_.loss.r_drop > 0) check_r_drop();
}

void TaskLoss::check_teacher() const {
  const ModelConfig &student = o_.network.config(), &teacher = o_.teacher->config();
  std::string problem;
  if (student.family != teacher.family) {
    problem = "both must have one family, the student is " + std::string(name_of(student.family)) +
              ", the teacher " + std::string(name_of(teacher.family));
  } else if (!predicts_tokens(student) || !predicts_tokens(teacher)) {
    problem = "both must have a language model head";
  } else if (student.output_vocabulary() != teacher.output_vocabulary()) {
    problem = "both must have one vocabulary, the student's has " +
              std::to_string(student.output_vocabulary()) + " ids, the teacher's " +
              std::to_string(teacher.output_vocabulary());
  } else if (o_.loss.cosine_weight > 0 && student.width != teacher.width) {
    problem = "objective.cosine_weight must be 0 for different widths, got student width " +
              std::to_string(student.width) + " and teacher width " + std::to_string(teacher.width);
  }
  if (!problem.empty()) {
    throw Error(ErrorCode::invalid_argument, "objective.teacher does not fit the model: " + problem,
                "choose a student of the teacher's family and vocabulary");
  }
}

void TaskLoss::check_r_drop() const {
  const ModelConfig& c = o_.network.config();
  const char* problem = nullptr;
  if (o_.teacher) {
    problem = "with objective.teacher: choose one of the two";
  } else if (!predicts_tokens(c)) {
    problem = "for this head: R-Drop compares two output distributions over the vocabulary";
  } else if (c.logits_soft_cap > 0) {
    problem = "for a model with logits_soft_cap";
  } else if (!has_dropout(c)) {
    problem = "for a model without dropout: both passes would be equal";
  }
  if (problem) {
    throw Error(ErrorCode::invalid_argument, "objective.r_drop must be 0 " + std::string(problem),
                "leave r_drop out");
  }
}

TaskLoss::View TaskLoss::view(const TrainingBatch& batch) const {
  return {batch_of(batch.input), batch_of(batch.target)};
}

Var TaskLoss::hidden(Ctx& ctx, const Network& network, const View& view) const {
  return network.transformer().hidden(ctx, {.source = view.input, .target = view.target});
}

std::optional<TaskLoss::HeadLoss> TaskLoss::head_loss(Ctx& ctx, const Var& rows,
                                                      const TrainingBatch& batch, const View& view,
                                                      const LabelCounts* counts) const {
  const bool regression = !batch.scores.empty(), classes = !batch.sequence_labels.empty();
  if (!regression && !classes && predicts_tokens(o_.network.config())) return std::nullopt;
  const Var output = o_.network.transformer().classify(ctx, rows, view.predicted());
  const bool per_sequence = regression || classes;
  const float scale =
      counts ? scale_of(1, per_sequence ? counts->sequences : counts->labels) : 1.0f;
  if (regression) {
    const ConstMat references(batch.scores.data(), output.rows(), output.cols());
    const LossSum sum = squared_error(ctx, output, references, scale);
    return HeadLoss{output, {LossKind::scores, 1, sum.sum, sum.count}};
  }
  const LossSum sum = cross_entropy(
      ctx, output, classes ? batch.sequence_labels : batch.labels,
      {.label_smoothing = counts ? o_.loss.label_smoothing : 0.0f, .gradient_scale = scale});
  return HeadLoss{output, {classes ? LossKind::classes : LossKind::labels, 1, sum.sum, sum.count}};
}

std::optional<LossPart> TaskLoss::next_sentence_loss(Ctx& ctx, const Var& rows,
                                                     const TrainingBatch& batch, const View& view,
                                                     const LabelCounts* counts) const {
  if (batch.next_sentence.empty()) return std::nullopt;
  const Var logits = o_.network.transformer().next_sentence(ctx, rows, view.input);
  const LossSum sum =
      cross_entropy(ctx, logits, batch.next_sentence,
                    {.gradient_scale = counts ? scale_of(1, counts->sequences) : 1.0f});
  return LossPart{LossKind::next_sentence, 1, sum.sum, sum.count};
}

StepLoss TaskLoss::train(Ctx& ctx, const TrainingBatch& batch, const LabelCounts& counts) {
  view_ = view(batch);
  const Var rows = hidden(ctx, o_.network, *view_);
  StepLoss loss;
  if (const auto head = head_loss(ctx, rows, batch, *view_, &counts)) {
    loss.parts.push_back(head->part);
  } else if (o_.teacher) {
    loss = distillation_losses(ctx, rows, batch, counts);
  } else {
    loss = token_losses(ctx, rows, batch, counts);
  }
  if (const auto part = next_sentence_loss(ctx, rows, batch, *view_, &counts)) {
    loss.parts.push_back(*part);
  }
  return loss;
}

bool TaskLoss::selects_rows(const TrainingBatch& batch) const {
  return !o_.teacher && 2 * count_labels(batch.labels) < static_cast<int64_t>(batch.labels.size());
}

StepLoss TaskLoss::token_losses(Ctx& ctx, Var hidden, const TrainingBatch& batch,
                                const LabelCounts& counts) {
  const Transformer& t = o_.network.transformer();
  labels_ = batch.labels;
  if (selects_rows(batch)) {
    select_labelled(batch.labels, labelled_rows_, labels_);
    hidden = take_rows(ctx, hidden, labelled_rows_);
  }
  const float scale = scale_of(1, counts.labels);
  StepLoss loss;
  if (o_.loss.r_drop > 0) {
    const OutputProjection own = t.output_projection(ctx, hidden);
    const TwinLoss twins = vocabulary_twin_cross_entropy(
        ctx, own.x, own.output, labels_, o_.loss.r_drop,
        {.label_smoothing = o_.loss.label_smoothing, .gradient_scale = scale});
    loss.parts.push_back({LossKind::labels, 1, twins.labels.sum, twins.labels.count});
    loss.parts.push_back(
        {LossKind::r_drop, o_.loss.r_drop / 2, twins.divergence.sum, twins.divergence.count});
    return loss;
  }
  const LossSum sum = t.token_loss(
      ctx, hidden, labels_, {.label_smoothing = o_.loss.label_smoothing, .gradient_scale = scale});
  loss.parts.push_back({LossKind::labels, 1, sum.sum, sum.count});
  return loss;
}

StepLoss TaskLoss::distillation_losses(Ctx& ctx, const Var& hidden, const TrainingBatch& batch,
                                       const LabelCounts& counts) const {
  const LossOptions& o = o_.loss;
  // The teacher runs without a tape; its activations stay in the arena until the step ends.
  Ctx inference{ctx.pool, ctx.arena};
  const Var teacher_hidden = this->hidden(inference, *o_.teacher, *view_);
  const OutputProjection teacher =
      o_.teacher->transformer().output_projection(inference, teacher_hidden);
  const OutputProjection own = o_.network.transformer().output_projection(ctx, hidden);
  StepLoss loss;
  const LossSum soft = vocabulary_kl_divergence(
      ctx, own.x, own.output, {teacher.x.value, teacher.output},
      {.temperature = o.temperature, .gradient_scale = scale_of(o.soft_weight, counts.rows)});
  loss.parts.push_back({LossKind::soft_targets, o.soft_weight, soft.sum, soft.count});
  if (o.label_weight > 0) {
    const LossSum sum =
        vocabulary_cross_entropy(ctx, own.x, own.output, batch.labels,
                                 {.label_smoothing = o.label_smoothing,
                                  .soft_cap = o_.network.config().logits_soft_cap,
                                  .gradient_scale = scale_of(o.label_weight, counts.labels)});
    loss.parts.push_back({LossKind::labels, o.label_weight, sum.sum, sum.count});
  }
  if (o.cosine_weight > 0) {
    const LossSum sum =
        cosine_distance(ctx, hidden, teacher_hidden.value, scale_of(o.cosine_weight, counts.rows));
    loss.parts.push_back({LossKind::cosine, o.cosine_weight, sum.sum, sum.count});
  }
  return loss;
}

// Logits tile by tile: as in training, those of the whole batch never exist.
Evaluation TaskLoss::evaluate_tokens(Ctx& ctx, const Var& hidden,
                                     const TrainingBatch& batch) const {
  const Transformer& t = o_.network.transformer();
  std::vector<int32_t> labelled_rows, labels;
  select_labelled(batch.labels, labelled_rows, labels);
  const Var rows = take_rows(ctx, hidden, labelled_rows);
  const int64_t tile =
      std::max<int64_t>(kEvaluationLogits / o_.network.config().output_vocabulary(), 16);
  Evaluation result;
  LossPart part{LossKind::labels};
  for (int64_t begin = 0; begin < rows.rows(); begin += tile) {
    const int64_t count = std::min(tile, rows.rows() - begin);
    const std::span<const int32_t> tile_labels =
        std::span(labels).subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    const Arena::Mark mark = ctx.arena.mark();
    const Mat& h = rows.value;
    const Var slice{Mat(h.data ? h.row(begin) : nullptr, count, h.cols, h.stride)};
    const Var logits = t.logits(ctx, slice);
    const LossSum sum = cross_entropy(ctx, logits, tile_labels, {});
    part.sum += sum.sum, part.count += sum.count;
    if (!ctx.measuring()) result.correct += count_correct(logits.value, tile_labels);
    ctx.arena.rewind(mark);
  }
  result.evaluated = part.count;
  result.loss.parts.push_back(part);
  return result;
}

Evaluation TaskLoss::evaluate(Ctx& ctx, const TrainingBatch& batch) const {
  const View v = view(batch);
  Var rows = hidden(ctx, o_.network, v);
  rows.value_kept = true;
  Evaluation result;
  if (const auto head = head_loss(ctx, rows, batch, v, nullptr)) {
    result.loss.parts.push_back(head->part);
    const Mat& output = head->output.value;
    if (head->part.kind == LossKind::scores) {
      const ConstMat references(batch.scores.data(), output.rows, output.cols);
      for (int64_t r = 0; !ctx.measuring() && r < output.rows; ++r) {
        const double x = output.row(r)[0], y = references.row(r)[0];
        result.n += 1, result.x += x, result.y += y;
        result.xx += x * x, result.yy += y * y, result.xy += x * y;
      }
    } else {
      const bool classes = head->part.kind == LossKind::classes;
      result.evaluated = head->part.count;
      if (!ctx.measuring()) {
        result.correct = count_correct(output, classes ? batch.sequence_labels : batch.labels);
      }
    }
  } else {
    result = evaluate_tokens(ctx, rows, batch);
  }
  if (const auto part = next_sentence_loss(ctx, rows, batch, v, nullptr)) {
    result.loss.parts.push_back(*part);
  }
  return result;
}

}  // namespace heed
