// A model is in memory once: while it loads, what was read of the file is given back.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/sanitized_testing.h"
#include "model/files/safetensors.h"
#include "model/network.h"
#include "model/packed_batch.h"

namespace heed {
namespace {

// Llama's shape, its matrices as they are in the file, and GPT-2's, which are transposed.
ModelConfig llama() {
  ModelConfig c;
  c.family = Family::decoder_only, c.encoder_layers = 0, c.decoder_layers = 4;
  c.vocabulary = 8000, c.width = 1024, c.heads = 16, c.ffn = 2816, c.max_positions = 64;
  c.position = Position::rope;
  c.norm = NormKind::rms_norm, c.norm_place = NormPlace::pre, c.final_norm = true;
  c.attention_bias = AttentionBias::none;
  c.ffn_kind = FfnKind::gated, c.ffn_bias = false, c.activation = Activation::silu;
  c.tying = Tying::none, c.embedding_scale = EmbeddingScale::none;
  return c;
}
ModelConfig gpt2() {
  ModelConfig c = llama();
  c.ffn = 4096, c.position = Position::learned;
  c.norm = NormKind::layer_norm, c.norm_bias = true;
  c.attention_bias = AttentionBias::all;
  c.ffn_kind = FfnKind::plain, c.ffn_bias = true, c.activation = Activation::gelu_tanh;
  c.tying = Tying::all;
  return c;
}

// Runs it in a process of its own and returns the number that it leaves; -1 when it fails.
int64_t in_a_child(const std::function<int64_t()>& action) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    int64_t result = -1;
    try {
      result = action();
    } catch (const std::exception&) {
    }
    _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  close(ends[1]);
  int64_t result = -1;
  if (child < 0 || read(ends[0], &result, sizeof result) != sizeof result) result = -1;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return result;
}

int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return -1;
}

class LoadMemory : public testing::TestWithParam<ModelConfig (*)()> {};

TEST_P(LoadMemory, IsHardlyMoreThanTheFile) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory would be measured";
  const std::string folder =
      testing::TempDir() + "heed_load_memory_" + (GetParam() == llama ? "llama" : "gpt2");
  const int64_t written = in_a_child([&] {
    const HfConfig hf = hf_equivalent(GetParam()());
    if (hf.model_type == "heed") return int64_t{-1};
    std::filesystem::create_directories(folder);
    const Parameters zeros(hf.config);
    write_safetensors_folder(folder, hf_tensors(hf, zeros).views, uint64_t{1} << 40);
    std::ofstream(folder + "/config.json") << hf_write_config(hf);
    return static_cast<int64_t>(std::filesystem::file_size(folder + "/model.safetensors"));
  });
  ASSERT_GT(written, int64_t{200} << 20) << "not what is to be measured";
  const int64_t peak = in_a_child([&] {
    const Network model = Network::load(folder);
    const PackedBatch packed(std::vector<std::vector<int32_t>>{{5}});
    const Batch batch = packed.batch();
    ThreadPool pool(1);
    Arena arena(size_t{1} << 20);
    Ctx ctx{pool, arena};
    const Var hidden = model.transformer().hidden(ctx, {.source = batch});
    const float first = model.transformer().logits(ctx, hidden).value.data[0];
    return first == 0 ? peak_resident_bytes() : -1;  // of weights that are all 0
  });
  std::filesystem::remove_all(folder);
  ASSERT_GT(peak, 0);
  const double share = static_cast<double>(peak) / static_cast<double>(written);
  EXPECT_GT(share, 1) << "the weights are not in memory";
  EXPECT_LE(share, 1.15);
  RecordProperty("share", std::to_string(share));
}

INSTANTIATE_TEST_SUITE_P(Models, LoadMemory, testing::Values(llama, gpt2),
                         [](const auto& test) { return test.param == llama ? "llama" : "gpt2"; });

}  // namespace
}  // namespace heed
