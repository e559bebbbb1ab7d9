// heed forward: runs the model on raw token ids and writes tensors.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/program.h"
#include "cli/table.h"
#include "heed/error.h"
#include "heed/model_files.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "The input is a JSON object of token ids: \"sequences\", or for encoder-decoder models\n"
    "\"sources\" and\n"
    "\"decoder_inputs\"; optionally \"token_type_ids\", \"global_tokens\" and \"labels\". The "
    "tensors are packed:\n"
    "sequences concatenated, without padding. With labels the loss is printed.\n"
    "\n"
    "Example:\n"
    "  heed forward --model DIR --inputs ids.json --out tensors.safetensors --attention";

struct ForwardFlags : CommonFlags {
  std::string model;
  ForwardOptions options;
};

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t n : shape) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

std::string to_text(const ForwardResult& result) {
  Table table({{"tensor"}, {"shape"}});
  for (const ForwardTensor& tensor : result.tensors) {
    table.add_row({tensor.name, shape_text(tensor.shape)});
  }
  return (result.loss ? "loss " + fixed(*result.loss, 6) + "\n" : "") + table.text();
}

std::string to_json(const ForwardResult& result) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
  for (const ForwardTensor& tensor : result.tensors) tensors[tensor.name] = tensor.shape;
  nlohmann::ordered_json document = {{"tensors", std::move(tensors)}};
  if (result.loss) document["loss"] = *result.loss;
  return document.dump(2) + "\n";
}

void run_forward_verb(ForwardFlags& flags, Output& out) {
  for (const auto& [flag, value] :
       {std::pair{"--model", flags.model}, {"--inputs", flags.options.inputs}}) {
    if (value.empty()) {
      throw Error(ErrorCode::invalid_argument, std::string("heed forward: ") + flag + " is missing",
                  "heed forward --model DIR --inputs FILE.json --out FILE.safetensors");
    }
  }
  flags.options.threads = flags.threads;
  const ForwardResult result = run_forward(flags.model, flags.options);
  out.write(flags.json ? to_json(result) : to_text(result));
}

}  // namespace

void add_forward(Program& program) {
  const Command forward =
      program.add_verb("forward", "Run the model on raw token ids and write tensors");
  const auto flags = std::make_shared<ForwardFlags>();
  add_text(forward, "--model", flags->model, "DIR", "model folder");
  add_text(forward, "--inputs", flags->options.inputs, "FILE", "JSON file with token ids");
  add_text(forward, "--out", flags->options.out, "FILE", "safetensors file to write");
  add_text(forward, "--grads", flags->options.gradients, "FILE", "safetensors file for gradients");
  add_switch(forward, "--attention", flags->options.attention, "also write attention weights");
  add_common_flags(forward, *flags);
  forward.footer(kHelp);
  forward.on_run([flags](Output& out) { run_forward_verb(*flags, out); });
}

}  // namespace heed::cli
