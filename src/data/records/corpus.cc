#include "data/records/corpus.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/thread_pool.h"
#include "data/batches/batch.h"
#include "data/batches/hash.h"
#include "data/records/example.h"
#include "data/records/record_reader.h"
#include "heed/error.h"

namespace heed {

namespace {

using nlohmann::json;

// Records tokenized at a time: enough for all threads, little memory.
constexpr size_t kChunkRecords = 4096;
constexpr size_t kChunkBytes = size_t{1} << 23;

// Fingerprint of a file: samples at its start, middle and end, its size and time.
constexpr int64_t kSampleBytes = 1 << 16;
// Examples encoded for the fingerprint: tokenizers with equal vocabularies may still tokenize
// differently.
constexpr int kProbeRecords = 32;

constexpr int kCacheVersion = 2;  // increase when example.h encodes differently

class Fingerprint {
 public:
  void add(std::string_view text) { hash_ = hash_text(text, hash_ + text.size()); }
  void add(uint64_t number) { hash_ = mix_bits(hash_ ^ number) + number; }
  void add(double number) { add(std::bit_cast<uint64_t>(number)); }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = kCacheVersion;
};

// All settings that affect the stored ids, without the content of the files.
uint64_t settings_fingerprint(const CorpusOptions& corpus, const ObjectiveOptions& objective,
                              const FilterOptions& filters, const Tokenizer& tokenizer) {
  Fingerprint print;
  for (const std::string& file : corpus.files) print.add(file);
  print.add(name_of(format_of(corpus, objective.kind)));
  print.add(name_of(corpus.unit));
  if (corpus.tree_words != LinearWords::xx) print.add(name_of(corpus.tree_words));
  for (const auto* text : {&corpus.first_column, &corpus.second_column, &corpus.label_column,
                           &corpus.source_prefix, &corpus.target_prefix}) {
    print.add(*text);
  }
  print.add(name_of(objective.kind));
  print.add(uint64_t{needs_sentences(objective)});
  for (const int32_t id : {objective.begin_id, objective.end_id}) {
    print.add(static_cast<uint64_t>(int64_t{id}));
  }
  for (const int64_t limit : {filters.min_tokens, filters.max_tokens, filters.max_line_bytes}) {
    print.add(static_cast<uint64_t>(limit));
  }
  print.add(filters.max_ratio);
  print.add(uint64_t{filters.duplicates});
  print.add(tokenizer_fingerprint(tokenizer));
  return print.value();
}

void add_file_content(const std::string& path, Fingerprint& print) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    throw Error(ErrorCode::not_found,
                path + ": cannot be read: " + std::generic_category().message(errno));
  }
  print.add(static_cast<uint64_t>(status.st_size));
  print.add(static_cast<uint64_t>(status.st_mtim.tv_sec));
  print.add(static_cast<uint64_t>(status.st_mtim.tv_nsec));
  std::ifstream file(path, std::ios::binary);
  const int64_t last = std::max<int64_t>(0, int64_t{status.st_size} - kSampleBytes);
  std::string sample;
  for (const int64_t place : {int64_t{0}, last / 2, last}) {
    sample.resize(static_cast<size_t>(kSampleBytes));
    file.clear();
    file.seekg(place);
    file.read(sample.data(), kSampleBytes);
    sample.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
    print.add(sample);
  }
}

// Adds the ids of the first examples.
void add_probe(const CorpusOptions& corpus, const StreamOptions& options,
               const ExampleEncoder& encoder, Fingerprint& print) {
  const auto reader = open_records(corpus, options.objective.kind, options.filters);
  Record record;
  for (int i = 0; i < kProbeRecords && reader->next(record); ++i) {
    if (record.first.size() > kSampleBytes) {  // part of a whole file
      record.first.resize(static_cast<size_t>(kSampleBytes));
      record.sentences.clear();
    }
    const EncodedExample example = encoder.encode(record);
    print.add(hash_ids(example.first));
    print.add(hash_ids(example.second));
    if (record.first.size() >= kSampleBytes) break;
  }
}

json report_to_json(const CorpusReport& report) {
  json skips = json::object();
  for (const auto& [skip, skip_name] : kEnumNames<Skip>) {
    const SkipCount& entry = report[skip];
    if (entry.count > 0) skips[skip_name] = {{"count", entry.count}, {"first", entry.first}};
  }
  return {
      {"read", report.read}, {"kept", report.kept}, {"tokens", report.tokens}, {"skips", skips}};
}

// Throws json::exception unless it is an integer: get() would convert any number, which for 1e66 is
// undefined behavior.
int64_t whole_at(const json& from, const char* key) {
  return from.at(key).get_ref<const json::number_integer_t&>();
}

void report_from_json(const json& from, CorpusReport& report) {
  report.read = whole_at(from, "read");
  report.kept = whole_at(from, "kept");
  report.tokens = whole_at(from, "tokens");
  for (const auto& [skip, skip_name] : kEnumNames<Skip>) {
    const auto found = from.at("skips").find(skip_name);
    if (found == from.at("skips").end()) continue;
    report[skip] = {.count = whole_at(*found, "count"), .first = found->at("first")};
  }
}

// None for invalid metadata: the cache is then rebuilt.
std::optional<Corpus> corpus_of(TokenStore store, const std::string& name) {
  try {
    const json metadata = json::parse(store.metadata());
    CorpusReport report{.name = name, .from_cache = true};
    report_from_json(metadata.at("report"), report);
    auto labels = metadata.at("labels").get<std::vector<std::string>>();
    return Corpus{std::move(store), std::move(report), std::move(labels)};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

// An exclusive lock across processes for its lifetime.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) {
      throw Error(ErrorCode::invalid_argument,
                  path + ": cannot be created: " + std::generic_category().message(errno),
                  "choose a writable cache folder");
    }
    // Where files cannot be locked (some network disks), the work may only be done twice.
    while (flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() { close(descriptor_); }

 private:
  int descriptor_;
};

// Reads, tokenizes in parallel, and writes in file order.
class CorpusBuilder {
 public:
  CorpusBuilder(const StreamOptions& options, const CorpusOptions& corpus,
                const ExampleEncoder& encoder)
      : options_(options), corpus_(corpus), encoder_(encoder), pool_(options.threads) {
    report_.name = corpus.files[0];
    for (const std::string& file : corpus.files) {
      std::error_code none;  // a pipe has no size, so no fraction
      const auto size = std::filesystem::file_size(file, none);
      if (!none) total_bytes_ += static_cast<int64_t>(size);
    }
  }

  Corpus build(const std::string& path, uint64_t fingerprint) {
    TokenStoreWriter writer(path, fingerprint);
    const auto reader = open_records(corpus_, options_.objective.kind, options_.filters);
    while (const size_t count = read_chunk(*reader)) {
      pool_.parallel_for(static_cast<int64_t>(count), 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto record = static_cast<size_t>(i);
          encoded_[record] = encoder_.encode(records_[record]);
        }
      });
      for (size_t i = 0; i < count; ++i) keep(records_[i], encoded_[i], writer);
      show_progress(*reader);
    }
    report_.kept = writer.examples();
    TokenStore store =
        writer.finish(json{{"report", report_to_json(report_)}, {"labels", labels_}}.dump());
    return {std::move(store), report_, labels_};
  }

 private:
  size_t read_chunk(RecordReader& reader) {
    records_.resize(kChunkRecords);
    encoded_.resize(kChunkRecords);
    size_t count = 0, bytes = 0;
    while (count < kChunkRecords && bytes < kChunkBytes && reader.next(records_[count])) {
      Record& record = records_[count++];
      if (record.skip) {  // skipped text is freed: it may be long
        record.first = {};
        record.second = {};
      }
      bytes += record.first.size() + record.second.size();
    }
    return count;
  }

  void keep(const Record& record, EncodedExample& example, TokenStoreWriter& writer) {
    ++report_.read;
    if (!example.skip && options_.filters.duplicates && !seen_.insert(hash_of(example)).second) {
      example.skip = Skip::duplicate;
    }
    if (example.skip) {
      report_.count(*example.skip,
                    example.why.empty() ? record.where() : record.where() + ": " + example.why);
      return;
    }
    if (example.truncated) report_.count(Skip::truncated, record.where());
    number_labels(example);
    writer.add(example.first, example.second);
    report_.tokens += std::ssize(example.first);
    const Objective kind = options_.objective.kind;
    if (kind == Objective::translation || kind == Objective::parsing) {
      report_.tokens += std::ssize(example.second);
    }
  }

  static uint64_t hash_of(const EncodedExample& example) {
    uint64_t hash = hash_ids(example.second, hash_ids(example.first));
    for (const std::string& label : example.labels) hash = hash_text(label, hash);
    return hash;
  }

  // Maps indices of the example's labels to class numbers of the corpus.
  void number_labels(EncodedExample& example) {
    if (options_.objective.kind == Objective::classification) {
      example.second[1] = label_number(example.labels[0]);
    } else if (options_.objective.kind == Objective::tagging) {
      for (int32_t& label : example.second) {
        if (label != kIgnoreLabel) label = label_number(example.labels[static_cast<size_t>(label)]);
      }
    }
  }
  int32_t label_number(const std::string& label) {
    const auto [entry, is_new] =
        label_numbers_.try_emplace(label, static_cast<int32_t>(labels_.size()));
    if (is_new) labels_.push_back(label);
    return entry->second;
  }

  void show_progress(const RecordReader& reader) const {
    if (!options_.progress) return;
    const double fraction = total_bytes_ > 0 ? static_cast<double>(reader.bytes_read()) /
                                                   static_cast<double>(total_bytes_)
                                             : 0;
    options_.progress(
        {.file = corpus_.files[0], .examples = report_.read, .fraction = std::min(1.0, fraction)});
  }

  const StreamOptions& options_;
  const CorpusOptions& corpus_;
  const ExampleEncoder& encoder_;
  ThreadPool pool_;
  CorpusReport report_;
  std::vector<Record> records_;
  std::vector<EncodedExample> encoded_;
  std::unordered_set<uint64_t> seen_;
  std::vector<std::string> labels_;
  std::unordered_map<std::string, int32_t> label_numbers_;
  int64_t total_bytes_ = 0;
};

}  // namespace

uint64_t tokenizer_fingerprint(const Tokenizer& tokenizer) {
  Fingerprint print;
  const int64_t size = tokenizer.vocabulary_size();
  print.add(static_cast<uint64_t>(size));
  for (int64_t id = 0; id < size; ++id) print.add(tokenizer.piece(static_cast<int32_t>(id)));
  const SpecialIds& special = tokenizer.special_ids();
  for (const int32_t id : {special.pad, special.unknown, special.begin, special.end,
                           special.classify, special.separate, special.mask}) {
    print.add(static_cast<uint64_t>(int64_t{id}));
  }
  return print.value();
}

Corpus open_corpus(const StreamOptions& options, size_t which, const Tokenizer& tokenizer) {
  const CorpusOptions& corpus = options.corpora.at(which);
  const ExampleEncoder encoder(tokenizer, corpus, options.objective, options.filters);
  open_records(corpus, options.objective.kind,
               options.filters);  // throws for bad files and columns
  CorpusBuilder builder(options, corpus, encoder);
  if (options.cache_folder.empty()) return builder.build("", 0);

  Fingerprint settings;
  settings.add(settings_fingerprint(corpus, options.objective, options.filters, tokenizer));
  Fingerprint content = settings;
  add_probe(corpus, options, encoder, content);
  for (const std::string& file : corpus.files) add_file_content(file, content);

  std::error_code error;
  std::filesystem::create_directories(options.cache_folder, error);
  if (error) {
    throw Error(ErrorCode::invalid_argument,
                options.cache_folder + ": cannot be created: " + error.message(),
                "choose a writable cache folder");
  }
  const std::string path = std::filesystem::path(options.cache_folder) /
                           (std::filesystem::path(corpus.files[0]).filename().string() + "-" +
                            hexadecimal(settings.value()) + ".tokens");
  const FileLock lock(path + ".lock");
  if (auto store = TokenStore::open(path, content.value())) {
    if (auto cached = corpus_of(std::move(*store), corpus.files[0])) return std::move(*cached);
  }
  return builder.build(path, content.value());
}

}  // namespace heed
