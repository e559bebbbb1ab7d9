#include "train/run/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "heed/error.h"
#include "kernels/rows/convert.h"
#include "model/files/safetensors.h"
#include "model/hugging_face/json_values.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr const char *kStateFile = "/state.json", *kTrainingFile = "/training.safetensors";
constexpr const char *kWeights = "weights.", *kMoment1 = "moment1.", *kMoment2 = "moment2.",
                     *kAverage = "average.";
constexpr int kStateVersion = 1;

// Calls visit(key, field) for every field of a state.
template <class State, class Visitor>
void describe_state(State& s, Visitor&& visit) {
  visit("step", s.step);
  visit("seed", s.seed);
  visit("epoch", s.cursor.epoch);
  visit("pool", s.cursor.pool);
  visit("batch", s.cursor.batch);
  visit("tokens", s.tokens);
  visit("seconds", s.seconds);
  visit("first_loss", s.first_loss);
  visit("interval_loss", s.interval_loss);
  visit("interval_steps", s.interval_steps);
  visit("metric", s.metric);
  visit("best_metric", s.best_metric);
  visit("best_step", s.best_step);
  visit("without_better", s.without_better);
  visit("settings", s.settings);
}

// Fields that older checkpoints do not have keep their defaults.
template <class State, class Visitor>
void describe_newer_state(State& s, Visitor&& visit) {
  visit("scheduled", s.scheduled);
}

bool read_state_value(const Json& json, double& field) {
  if (!json.is_number()) return false;
  field = json.get<double>();
  return true;
}
bool read_state_value(const Json& json, uint64_t& field) {
  if (!json.is_number_unsigned()) return false;
  field = json.get<uint64_t>();
  return true;
}
bool read_state_value(const Json& json, std::string& field) {
  if (!json.is_string()) return false;
  field = json.get<std::string>();
  return true;
}
bool read_state_value(const Json& json, std::optional<double>& field) {
  if (json.is_null()) return field.reset(), true;
  return read_state_value(json, field.emplace());
}
template <class T>
bool read_state_value(const Json& json, T& field) {
  return read_value(json, field).empty();
}

Json state_value_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
template <class T>
Json state_value_json(const T& value) {
  return value;
}

// A removed OUT is not made again: its checkpoints are lost, which must be reported.
void require_folder(const std::string& out) {
  if (fs::is_directory(out)) return;
  throw Error(ErrorCode::invalid_argument, out + ": the folder was removed during training",
              "run the same command again to start from the beginning; no checkpoint is left");
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, path + ": " + why,
              "free some space or choose another --out; earlier checkpoints are intact");
}

// Calls visit(spec, bytes) for the part of each weight in a flat buffer of some dtype.
template <class Byte, class Visit>
void each_weight(const Parameters& p, std::span<Byte> buffer, DType dtype, const Visit& visit) {
  const float* const base = p.all_values().data();
  for (const ParameterSpec& spec : p.specs()) {
    const auto at = static_cast<size_t>(p.values(spec.name).data() - base);
    visit(spec, buffer.subspan(at * element_bytes(dtype),
                               static_cast<size_t>(spec.size()) * element_bytes(dtype)));
  }
}

// Those parts, named by a prefix and the weight.
void add_views(const char* prefix, std::span<const std::byte> buffer, DType dtype,
               const Parameters& p, std::vector<TensorView>& views) {
  each_weight(p, buffer, dtype, [&](const ParameterSpec& spec, std::span<const std::byte> bytes) {
    views.push_back({prefix + spec.name, dtype, {spec.rows, spec.cols}, bytes});
  });
}

DType dtype_of(MomentType type) { return type == MomentType::bf16 ? DType::bf16 : DType::f32; }

// f32 to bf16, or back. In pieces: the numbers of a file need not be aligned.
void convert(const TensorView& view, std::span<std::byte> out, DType dtype) {
  constexpr size_t kPiece = 1 << 14;
  std::array<float, kPiece> wide{};
  std::array<uint16_t, kPiece> narrow{};
  const size_t from = element_bytes(view.dtype), to = element_bytes(dtype);
  const size_t count = out.size() / to;
  for (size_t at = 0; at < count; at += kPiece) {
    const size_t n = std::min(kPiece, count - at);
    const std::byte* const source = view.bytes.data() + at * from;
    if (dtype == DType::bf16) {
      std::memcpy(wide.data(), source, n * from);
      kernels::f32_to_bf16(wide.data(), narrow.data(), static_cast<int64_t>(n));
      std::memcpy(out.data() + at * to, narrow.data(), n * to);
    } else {
      std::memcpy(narrow.data(), source, n * from);
      kernels::bf16_to_f32(narrow.data(), wide.data(), static_cast<int64_t>(n));
      std::memcpy(out.data() + at * to, wide.data(), n * to);
    }
  }
}

// The numbers of one weight as `dtype`; the file may have f32 or bf16.
void read_view(const TensorFile& file, const char* prefix, const ParameterSpec& spec,
               const std::string& where, std::span<std::byte> out, DType dtype = DType::f32) {
  const TensorView* view = file.find(prefix + spec.name);
  const std::vector<int64_t> shape{spec.rows, spec.cols};
  if (!view || view->shape != shape || (view->dtype != DType::f32 && view->dtype != DType::bf16)) {
    throw Error(
        ErrorCode::invalid_argument,
        where + ": " + prefix + spec.name + " is " +
            (view ? shape_text(view->shape) + " of " + name(view->dtype) : std::string("missing")) +
            ", this recipe's model has " + shape_text(shape),
        "train another model into another folder: --out NEW");
  }
  if (view->dtype == dtype) {
    std::memcpy(out.data(), view->bytes.data(), out.size());
  } else {
    convert(*view, out, dtype);
  }
  file.drop_pages();  // otherwise the file's pages would count as memory of the resumed training
}

void read_views(const TensorFile& file, const char* prefix, const Parameters& p,
                const std::string& where, std::span<std::byte> buffer, DType dtype = DType::f32) {
  each_weight(p, buffer, dtype, [&](const ParameterSpec& spec, std::span<std::byte> out) {
    read_view(file, prefix, spec, where, out, dtype);
  });
}

std::optional<int64_t> step_of(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kPrefix.size(), end, step);
  return read.ec == std::errc() && read.ptr == end ? std::optional(step) : std::nullopt;
}

// Renames `from` to `to`. An existing folder is exchanged atomically and then removed.
void replace_folder(const std::string& from, const std::string& to) {
  std::error_code failed;
  if (!fs::exists(to)) {
    fs::rename(from, to, failed);
    if (failed) fail(to, failed.message());
    return;
  }
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(from, failed);
    return;
  }
  const std::string old = to + ".old";  // for file systems without an atomic exchange
  fs::remove_all(old, failed);
  fs::rename(to, old, failed);
  if (!failed) fs::rename(from, to, failed);
  if (failed) fail(to, failed.message());
  fs::remove_all(old, failed);
}

// The hint for a checkpoint that cannot be read.
std::string removal_hint(const fs::path& folder) {
  const int64_t step = step_of(folder.filename()).value_or(0);
  int64_t before = -1;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder.parent_path(), missing)) {
    const int64_t other = step_of(entry.path().filename()).value_or(-1);
    if (other < step) before = std::max(before, other);
  }
  return "remove " + folder.string() +
         (before < 0 ? " to start from the beginning: there is no earlier checkpoint"
                     : " to resume from step-" + std::to_string(before));
}

// Runs `read`; adds that hint to errors about damaged or missing files.
template <class Read>
auto reading(const fs::path& folder, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt_file && error.code() != ErrorCode::not_found) throw;
    throw Error(ErrorCode::corrupt_file, error.what(), removal_hint(folder));
  }
}

std::string text_of_file(const std::string& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

}  // namespace

void sync_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  const bool fine = descriptor >= 0 && fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  // Some file systems cannot flush a folder (EINVAL), and need not.
  if (!fine && error != EINVAL) fail(folder, std::generic_category().message(error));
}

std::string to_json(const TrainingState& state) {
  Json json = {{"version", kStateVersion}};
  const auto add = [&](const char* key, const auto& field) { json[key] = state_value_json(field); };
  describe_state(state, add);
  describe_newer_state(state, add);
  return json.dump(2) + "\n";
}

TrainingState state_from_json(const std::string& text, const std::string& where) {
  const Json json = parse_object(text);
  const auto corrupt = [&](const std::string& why) {
    return Error(ErrorCode::corrupt_file, where + ": " + why);
  };
  if (!json.is_object()) throw corrupt("not a JSON object");
  if (json.value("version", Json()) != kStateVersion)
    throw corrupt("unsupported checkpoint version");
  TrainingState state;
  describe_state(state, [&](const char* key, auto& field) {
    const auto found = json.find(key);
    if (found == json.end() || !read_state_value(*found, field)) {
      throw corrupt(std::string(key) + " is missing or has the wrong type");
    }
  });
  describe_newer_state(state, [&](const char* key, auto& field) {
    const auto found = json.find(key);
    if (found != json.end() && !read_state_value(*found, field)) {
      throw corrupt(std::string(key) + " has the wrong type");
    }
  });
  return state;
}

std::string Checkpoints::path(int64_t step, const char* suffix) const {
  return folder_ + "/step-" + std::to_string(step) + suffix;
}

std::vector<Checkpoint> Checkpoints::list() const {
  std::vector<Checkpoint> list;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder_, missing)) {
    if (!step_of(entry.path().filename())) continue;
    const std::string state = entry.path().string() + kStateFile;
    list.push_back({entry.path(), reading(entry.path(), [&] {
                      return state_from_json(text_of_file(state), state);
                    })});
  }
  std::ranges::sort(list, {}, [](const Checkpoint& c) { return c.state.step; });
  return list;
}

std::string Checkpoints::begin(const Network& network, int64_t step,
                               const std::function<void(const std::string&)>& save_beside_model) {
  std::string partial = path(step, ".partial");
  require_folder(fs::path(folder_).parent_path());
  std::error_code failed;
  fs::remove_all(partial, failed);
  if (!failed) fs::create_directory(folder_, failed);
  if (!failed) fs::create_directory(partial, failed);
  if (failed) fail(partial, failed.message());
  network.save(partial);
  if (save_beside_model) save_beside_model(partial);
  return partial;
}

void Checkpoints::commit(Network& network, Optimizer& optimizer, const TrainingState& state) {
  require_folder(fs::path(folder_).parent_path());
  const std::string partial = path(state.step, ".partial"), final = path(state.step);
  const Parameters& p = network.parameters();
  std::vector<TensorView> views;
  const DType moments = dtype_of(optimizer.moment_type());
  add_views(kWeights, std::as_bytes(p.all_values()), DType::f32, p, views);
  add_views(kMoment1, optimizer.moment1(), moments, p, views);
  add_views(kMoment2, optimizer.moment2(), moments, p, views);
  if (optimizer.has_average()) {
    add_views(kAverage, std::as_bytes(optimizer.average()), DType::f32, p, views);
  }
  try {
    write_safetensors(partial + kTrainingFile, views);
    AtomicFile file(partial + kStateFile);
    file.write(to_json(state));
    file.commit();
    sync_folder(partial);
    // The same step exists if a finished training is prolonged, or if a stop interrupted its
    // validation.
    replace_folder(partial, final);
  } catch (...) {
    abandon(state.step);
    throw;
  }
  sync_folder(folder_);
}

void Checkpoints::abandon_all() const {
  std::error_code ignored;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const fs::path name = entry.path().filename();
    const bool is_left = name.extension() == ".partial" || name.extension() == ".old";
    if (is_left && step_of(name.stem())) left.push_back(entry.path());
  }
  for (const fs::path& folder : left) fs::remove_all(folder, ignored);
}

void Checkpoints::abandon(int64_t step) const {
  std::error_code ignored;
  fs::remove_all(path(step, ".partial"), ignored);
}

void Checkpoints::load(const Checkpoint& checkpoint, Network& network, Optimizer& optimizer) {
  const std::string where = checkpoint.folder + kTrainingFile;
  const TensorFile file = reading(checkpoint.folder, [&] { return TensorFile::open(where); });
  Parameters& p = network.parameters();
  read_views(file, kWeights, p, where, std::as_writable_bytes(p.all_values()));
  const DType moments = dtype_of(optimizer.moment_type());
  read_views(file, kMoment1, p, where, optimizer.moment1(), moments);
  read_views(file, kMoment2, p, where, optimizer.moment2(), moments);
  if (optimizer.has_average()) {
    // A moving average that is switched on now starts from the weights.
    const bool saved = file.find(kAverage + p.specs().front().name) != nullptr;
    read_views(file, saved ? kAverage : kWeights, p, where,
               std::as_writable_bytes(optimizer.average()));
  }
  optimizer.set_steps(checkpoint.state.step);
}

std::vector<Checkpoint> Checkpoints::best(std::vector<Checkpoint> list, size_t count,
                                          bool lower_is_better) {
  std::erase_if(list, [](const Checkpoint& c) { return !c.state.metric; });
  std::ranges::stable_sort(list, {}, [&](const Checkpoint& c) {
    return lower_is_better ? *c.state.metric : -*c.state.metric;
  });
  if (list.size() > count) list.resize(count);
  return list;
}

void Checkpoints::prune(const Keep& keep) const {
  const std::vector<Checkpoint> all = list();
  std::set<int64_t> kept;
  if (!all.empty()) kept.insert(all.back().state.step);
  int last = 0;
  for (size_t i = all.size(); i-- > 0 && last < keep.last;) {
    if (!all[i].state.scheduled) continue;
    kept.insert(all[i].state.step);
    ++last;
  }
  for (const Checkpoint& c : best(all, static_cast<size_t>(keep.best), keep.lower_is_better)) {
    kept.insert(c.state.step);
  }
  for (const Checkpoint& c : all) {
    if (kept.contains(c.state.step)) continue;
    // Renamed first: an interrupted removal must not leave half a checkpoint.
    const std::string gone = path(c.state.step, ".partial");
    std::error_code failed;
    fs::remove_all(gone, failed);
    fs::rename(c.folder, gone, failed);
    if (!failed) fs::remove_all(gone, failed);
  }
}

void load_average(const std::vector<Checkpoint>& checkpoints, Parameters& p) {
  HEED_CHECK(!checkpoints.empty(), "an average must have checkpoints");
  struct Source {
    TensorFile file;
    const char* prefix;
    std::string where;
  };
  std::vector<Source> sources;
  for (const Checkpoint& c : checkpoints) {
    const std::string where = c.folder + kTrainingFile;
    TensorFile file = TensorFile::open(where);
    const bool averaged = file.find(kAverage + p.specs().front().name) != nullptr;
    sources.push_back({std::move(file), averaged ? kAverage : kWeights, where});
  }
  // Weight by weight, so that no second model is in memory.
  std::vector<double> sum;
  for (const ParameterSpec& spec : p.specs()) {
    sum.assign(static_cast<size_t>(spec.size()), 0.0);
    const std::span<float> values = p.values(spec.name);
    for (const Source& source : sources) {
      read_view(source.file, source.prefix, spec, source.where, std::as_writable_bytes(values));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
    }
    for (size_t i = 0; i < sum.size(); ++i) {
      values[i] = static_cast<float>(sum[i] / static_cast<double>(sources.size()));
    }
  }
}

}  // namespace heed
