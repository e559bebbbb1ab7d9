// Any bytes as the files of sentence-transformers: modules.json, the pooling's config.json and
// sentence_bert_config.json, separated by NULs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "heed/tasks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heed;
  static const fuzz::ScratchFolder folder;
  const auto [modules, pooling, settings] =
      fuzz::split_at_nuls<3>({reinterpret_cast<const char*>(data), size});
  folder.write("modules.json", modules);
  folder.write("1_Pooling/config.json", pooling);
  folder.write("sentence_bert_config.json", settings);
  fuzz::expect_ordinary([] {
    if (embed_options(folder.path()).max_tokens < 0) std::abort();
  });
  return 0;
}
