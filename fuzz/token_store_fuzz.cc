// Any bytes as a token store. A fuzzer does not guess checksums, so they are corrected first: what
// remains is what a malicious file can contain.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "data/batches/hash.h"
#include "data/batches/token_store.h"
#include "expect_ordinary.h"
#include "fuzz_folder.h"

namespace {

using namespace heed;

// The trailer's fields, as in token_store.cc.
enum Field { fingerprint, examples, blocks, first_tokens, index, metadata, checksum, magic };
constexpr size_t kFields = 8, kWord = sizeof(uint64_t);

uint64_t word_at(const std::string& file, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, file.data() + at, kWord);
  return value;
}
void set_word(std::string& file, size_t at, uint64_t value) {
  std::memcpy(file.data() + at, &value, kWord);
}
uint64_t hash_part(const std::string& file, size_t begin, size_t end, uint64_t seed = 0) {
  return hash_text(std::string_view(file).substr(begin, end - begin), seed);
}

void mend_checksums(std::string& file) {
  if (file.size() < kFields * kWord) return;
  const size_t trailer = file.size() - kFields * kWord;
  const uint64_t tail = word_at(file, trailer + index * kWord);
  if (tail > trailer) return;
  // For each block inside the file: its offset and checksum.
  constexpr size_t kEntry = sizeof(TokenStore::BlockEntry);
  for (size_t entry = tail; entry + 2 * kEntry <= trailer; entry += kEntry) {
    const uint64_t begin = word_at(file, entry), end = word_at(file, entry + kEntry);
    if (begin > end || end > tail) break;
    set_word(file, entry + kWord, hash_part(file, begin, end));
  }
  const uint64_t seed = hash_part(file, tail, trailer);
  set_word(file, trailer + checksum * kWord,
           hash_part(file, trailer, trailer + checksum * kWord, seed));
}

void read(const TokenStore& store) {
  int64_t tokens = 0;
  volatile int64_t sum = 0;  // reads every id
  for (int64_t i = 0; i < store.examples(); ++i) {
    for (const int32_t id : store.second(i)) sum = sum + id;
    tokens += store.first_size(i);
  }
  if (tokens != store.first_tokens()) std::abort();
  std::vector<int32_t> stream(static_cast<size_t>(tokens));
  store.copy_stream(0, stream);
  for (int64_t i = 0; i < tokens; ++i) {
    int32_t id = 0;
    store.copy_stream(i, {&id, 1});
    if (id != stream[static_cast<size_t>(i)]) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFolder folder;
  std::string file(reinterpret_cast<const char*>(data), size);
  mend_checksums(file);
  const uint64_t made_from =
      size < kFields * kWord ? 0 : word_at(file, size - kFields * kWord + fingerprint * kWord);
  const std::string path = folder.write("corpus.tokens", file);
  fuzz::expect_ordinary([&] {
    if (const auto store = TokenStore::open(path, made_from)) read(*store);
  });
  return 0;
}
