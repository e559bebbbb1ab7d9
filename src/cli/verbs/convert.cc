// heed convert: a model folder as safetensors, in another type.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/out_folder.h"
#include "cli/program.h"
#include "heed/error.h"
#include "heed/model_files.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    "Without --type each tensor keeps its type. What need not change is copied byte for byte:\n"
    "tensors, config.json, the tokenizer's files, the model card. With --type a quantized model\n"
    "becomes the floats that it stands for.\n"
    "\n"
    "Examples:\n"
    "  heed convert --model DIR --out OUT                # pytorch_model.bin as safetensors\n"
    "  heed convert --model DIR --out OUT --type f16";

struct ConvertFlags : CommonFlags {
  std::string model, out;
  bool force = false;
  ConvertOptions options;
};

void run_convert(const ConvertFlags& flags, Output& out) {
  for (const auto& [flag, value] : {std::pair{"--model", flags.model}, {"--out", flags.out}}) {
    if (value.empty()) {
      throw Error(ErrorCode::invalid_argument, std::string("heed convert: ") + flag + " is missing",
                  "heed convert --model DIR --out DIR [--type f16]");
    }
  }
  check_out_folder(flags.model, flags.out, flags.force);
  const ConvertReport report = convert_model(flags.model, flags.out, flags.options);
  if (flags.json) {
    const nlohmann::ordered_json document = {
        {"out", flags.out}, {"type", report.type}, {"copied", report.copied}};
    out.write(document.dump(2) + "\n");
  } else {
    out.write(flags.out + ": " + report.type + " weights" +
              (report.copied ? ", copied unchanged\n" : "\n"));
  }
}

}  // namespace

void add_convert(Program& program) {
  const Command convert =
      program.add_verb("convert", "Convert a model folder to safetensors, or to f32, f16 or bf16");
  const auto flags = std::make_shared<ConvertFlags>();
  add_text(convert, "--model", flags->model, "DIR", "model folder to read");
  add_text(convert, "--out", flags->out, "DIR", "folder to write; must be new or empty");
  add_text(convert, "--type", flags->options.type, "TYPE",
           "f32, f16 or bf16 (default: as in the model)");
  add_switch(convert, "--force", flags->force, "overwrite the model in --out");
  add_common_flags(convert, *flags);
  convert.footer(kHelp);
  convert.on_run([flags](Output& out) { run_convert(*flags, out); });
}

}  // namespace heed::cli
