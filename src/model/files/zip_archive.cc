#include "model/files/zip_archive.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "heed/error.h"
#include "model/files/file_problems.h"
#include "model/files/little_endian.h"

namespace heed {

namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;  // "PK\3\4"
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kEndOfDirectory = 0x06054b50;
constexpr uint32_t kEndOfDirectory64 = 0x06064b50;
constexpr uint32_t kEndLocator64 = 0x07064b50;

constexpr size_t kLocalHeaderBytes = 30, kDirectoryEntryBytes = 46, kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56, kLocator64Bytes = 20;

constexpr uint32_t kIn64 = 0xffffffff;  // "the number is in the ZIP64 record"
constexpr uint16_t kEncrypted = 1;      // bit of the flags
constexpr uint16_t kStored = 0;         // compression method
constexpr uint16_t kExtra64 = 1;        // id of the extra field with 64-bit numbers

// The file, with every access checked.
class Bytes {
 public:
  Bytes(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  size_t size() const { return file_.size(); }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::corrupt_file, where_ + ": " + why,
                "the file may have been cut short: copy or download it again");
  }
  [[noreturn]] void refuse_unsupported(const std::string& why, const std::string& hint) const {
    throw Error(ErrorCode::unsupported, where_ + ": " + why, hint);
  }

  std::span<const std::byte> range(uint64_t offset, uint64_t length) const {
    // No sum can overflow here: both numbers may come from a hostile file.
    if (offset > file_.size() || length > file_.size() - offset)
      refuse("its ZIP directory points past the end of the file");
    return file_.subspan(offset, length);
  }

  std::string_view text(uint64_t offset, uint64_t length) const {
    const auto bytes = range(offset, length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  template <class T>
  T number(uint64_t offset) const {
    return load_little_endian<T>(range(offset, sizeof(T)).data());
  }

 private:
  std::span<const std::byte> file_;
  const std::string& where_;
};

struct Directory {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

// The record at the end of the archive; a comment of up to 64 KB may follow it.
size_t find_end_record(const Bytes& file) {
  constexpr size_t kLongestComment = std::numeric_limits<uint16_t>::max();
  if (file.size() < kEndBytes) file.refuse("too short for a ZIP archive");
  const size_t last = file.size() - kEndBytes;
  const size_t first = last - std::min(last, kLongestComment);
  for (size_t at = last + 1; at-- > first;) {
    if (file.number<uint32_t>(at) != kEndOfDirectory) continue;
    if (at + kEndBytes + file.number<uint16_t>(at + 20) == file.size()) return at;
  }
  file.refuse("the directory at the end of the ZIP archive is missing");
}

Directory find_directory(const Bytes& file) {
  const size_t end = find_end_record(file);
  const Directory classic{.offset = file.number<uint32_t>(end + 16),
                          .bytes = file.number<uint32_t>(end + 12),
                          .entries = file.number<uint16_t>(end + 10)};
  if (end < kLocator64Bytes) return classic;
  const size_t locator = end - kLocator64Bytes;
  if (file.number<uint32_t>(locator) != kEndLocator64) return classic;
  const auto end64 = file.number<uint64_t>(locator + 8);
  file.range(end64, kEnd64Bytes);
  if (file.number<uint32_t>(end64) != kEndOfDirectory64)
    file.refuse("its ZIP64 directory is not where it should be");
  return {.offset = file.number<uint64_t>(end64 + 48),
          .bytes = file.number<uint64_t>(end64 + 40),
          .entries = file.number<uint64_t>(end64 + 32)};
}

// Sizes and offset of an entry; those that do not fit into 32 bits are in an extra field, in order.
struct Numbers {
  uint64_t size = 0, stored_size = 0, offset = 0;
};

Numbers read_numbers(const Bytes& file, uint64_t entry, uint64_t extra, uint64_t extra_bytes) {
  Numbers numbers{.size = file.number<uint32_t>(entry + 24),
                  .stored_size = file.number<uint32_t>(entry + 20),
                  .offset = file.number<uint32_t>(entry + 42)};
  const uint64_t extra_end = extra + extra_bytes;
  while (extra_end - extra >= 4) {
    const auto id = file.number<uint16_t>(extra), length = file.number<uint16_t>(extra + 2);
    extra += 4;
    if (length > extra_end - extra) file.refuse("an extra field in its ZIP directory is too long");
    const uint64_t field_end = extra + length;
    if (id == kExtra64) {
      uint64_t at = extra;
      for (uint64_t* number : {&numbers.size, &numbers.stored_size, &numbers.offset}) {
        if (*number != kIn64) continue;
        if (field_end - at < 8) file.refuse("a ZIP64 field in its directory is too short");
        *number = file.number<uint64_t>(at);
        at += 8;
      }
      return numbers;
    }
    extra = field_end;
  }
  return numbers;
}

// The content of the entry whose local header is at `offset`; sizes there may be zero, because a
// writer that streams learns them later, so the directory's count.
std::span<const std::byte> entry_bytes(const Bytes& file, std::string_view name,
                                       const Numbers& numbers) {
  file.range(numbers.offset, kLocalHeaderBytes);
  if (file.number<uint32_t>(numbers.offset) != kLocalHeader)
    file.refuse("the ZIP entry " + in_quotes(name) + " is not where its directory says");
  const auto name_bytes = file.number<uint16_t>(numbers.offset + 26);
  const auto extra_bytes = file.number<uint16_t>(numbers.offset + 28);
  const uint64_t name_at = numbers.offset + kLocalHeaderBytes;
  if (file.text(name_at, name_bytes) != name)
    file.refuse("the ZIP entry " + in_quotes(name) + " has another name in its own header");
  return file.range(name_at + name_bytes + extra_bytes, numbers.size);
}

}  // namespace

std::vector<ZipEntry> read_zip_archive(std::span<const std::byte> bytes, const std::string& where) {
  const Bytes file(bytes, where);
  const Directory directory = find_directory(file);
  file.range(directory.offset, directory.bytes);
  const uint64_t end = directory.offset + directory.bytes;

  std::vector<ZipEntry> entries;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (end - at < kDirectoryEntryBytes || file.number<uint32_t>(at) != kDirectoryEntry)
      file.refuse("entry " + std::to_string(i + 1) + " of its ZIP directory is damaged");
    const auto flags = file.number<uint16_t>(at + 8), method = file.number<uint16_t>(at + 10);
    const uint64_t name_bytes = file.number<uint16_t>(at + 28);
    const uint64_t extra_bytes = file.number<uint16_t>(at + 30);
    const uint64_t comment_bytes = file.number<uint16_t>(at + 32);
    const uint64_t entry_size = kDirectoryEntryBytes + name_bytes + extra_bytes + comment_bytes;
    if (entry_size > end - at)
      file.refuse("entry " + std::to_string(i + 1) + " of its ZIP directory is damaged");
    const std::string_view name = file.text(at + kDirectoryEntryBytes, name_bytes);
    const Numbers numbers =
        read_numbers(file, at, at + kDirectoryEntryBytes + name_bytes, extra_bytes);
    at += entry_size;

    if (name.ends_with('/')) continue;  // a folder
    if ((flags & kEncrypted) != 0)
      file.refuse_unsupported("the ZIP entry " + in_quotes(name) + " is encrypted", "");
    if (method != kStored) {
      file.refuse_unsupported("the ZIP entry " + in_quotes(name) + " is compressed",
                              "save the model with torch.save, which compresses nothing, or as "
                              "safetensors");
    }
    if (numbers.size != numbers.stored_size)
      file.refuse("the ZIP entry " + in_quotes(name) + " is not as long as its content");
    entries.push_back({.name = name, .bytes = entry_bytes(file, name, numbers)});
  }

  std::sort(entries.begin(), entries.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.name < b.name; });
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].name == entries[i - 1].name)
      file.refuse("the ZIP entry " + in_quotes(entries[i].name) + " is there twice");
  }
  return entries;
}

const ZipEntry* find_entry(std::span<const ZipEntry> sorted, std::string_view name) {
  const auto found = std::lower_bound(
      sorted.begin(), sorted.end(), name,
      [](const ZipEntry& entry, std::string_view key) { return entry.name < key; });
  return found == sorted.end() || found->name != name ? nullptr : &*found;
}

}  // namespace heed
