// Any bytes as what a training has left for others to read: the first byte says whether it is the
// log.jsonl or the table.json that the page shows, or a checkpoint's state.json.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz_folder.h"
#include "heed/error.h"
#include "serve/runs.h"
#include "train/checkpoint.h"

namespace {

using namespace heed;

void read_run(const char* file, std::string_view content) {
  static const fuzz::ScratchFolder folder;
  folder.empty();
  folder.write(file, content);
  const serve::RunsFolder runs(folder.path());
  const std::vector<serve::RunEntry> entries = runs.list();
  if (entries.size() != 1) std::abort();
  const auto run = runs.read(entries[0].name);
  if (run) run->dump();
}

void read_state(const std::string& json) {
  try {
    const TrainingState state = state_from_json(json, "input");
    if (!(state_from_json(to_json(state), "written") == state)) std::abort();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      read_run("log.jsonl", content);
      break;
    case 1:
      read_run("table.json", content);
      break;
    default:
      read_state(std::string(content));
  }
  return 0;
}
