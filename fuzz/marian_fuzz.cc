// Any bytes as Marian's tokenizer: vocab.json, target_vocab.json, tokenizer_config.json and
// source.spm, separated by NULs; target.spm is well-formed.
#include <cstddef>
#include <cstdint>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "fuzz_spiece.h"
#include "use_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heed;
  static const fuzz::ScratchFolder folder;
  const auto [vocabulary, target_vocabulary, config, source] =
      fuzz::split_at_nuls<4>({reinterpret_cast<const char*>(data), size});
  folder.empty();
  folder.write("vocab.json", vocabulary);
  folder.write("target_vocab.json", target_vocabulary);
  if (!config.empty()) folder.write("tokenizer_config.json", config);
  folder.write("source.spm", source);
  folder.write("target.spm", fuzz::spiece_model(2, /*rules=*/false));
  fuzz::expect_ordinary([] { fuzz::use(*load_tokenizer(folder.path())); });
  return 0;
}
