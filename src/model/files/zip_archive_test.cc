#include "model/files/zip_archive.h"

#include <cstdint>

#include "base/files/file_testing.h"
#include "model/files/torch_testing.h"

namespace heed {
namespace {

std::vector<ZipPart> two_parts() {
  return {{.name = "archive/b", .content = "bee", .flags = 0x808, .extra = std::string(7, 'F')},
          {.name = "archive/a", .content = ""}};
}

std::vector<ZipEntry> read(const std::string& file) {
  return read_zip_archive(as_bytes(file), "x.bin");
}

void overwrite(std::string& file, size_t at, const std::string& with) {
  file.replace(at, with.size(), with);
}

TEST(ZipArchive, ListsItsEntriesByName) {
  for (const bool zip64 : {false, true}) {
    for (const std::string comment : {"", "a comment", "PK\x05\x06 in a comment"}) {
      const std::string file = make_zip(two_parts(), zip64, comment);
      const auto entries = read(file);
      ASSERT_EQ(entries.size(), 2u);
      EXPECT_EQ(entries[0].name, "archive/a");
      EXPECT_TRUE(entries[0].bytes.empty());
      EXPECT_EQ(entries[1].name, "archive/b");
      EXPECT_EQ(text_of(entries[1].bytes), "bee");
      EXPECT_EQ(find_entry(entries, "archive/b"), &entries[1]);
      EXPECT_EQ(find_entry(entries, "archive/c"), nullptr);
    }
  }
}

TEST(ZipArchive, PassesOverFolders) {
  const std::string file = make_zip({{.name = "archive/", .content = ""}});
  EXPECT_TRUE(read(file).empty());
}

TEST(ZipArchive, RefusesWhatItDoesNotRead) {
  expect_error(ErrorCode::unsupported, "x.bin: the ZIP entry 'a' is compressed",
               [] { read(make_zip({{.name = "a", .content = "zzz", .method = 8}})); });
  expect_error(ErrorCode::unsupported, "x.bin: the ZIP entry 'a' is encrypted",
               [] { read(make_zip({{.name = "a", .content = "zzz", .flags = 1}})); });
  expect_error(ErrorCode::corrupt_file, "'a' is there twice", [] {
    read(make_zip({{.name = "a", .content = ""}, {.name = "a", .content = ""}}));
  });
}

// Whatever is cut off, the end of the directory is missed.
TEST(ZipArchive, TruncatedAtEveryLength) {
  for (const bool zip64 : {false, true}) {
    const std::string file = make_zip(two_parts(), zip64);
    for (size_t length = 0; length < file.size(); ++length) {
      // A copy: an access past the end is then seen by the address sanitizer.
      const std::string cut(file.data(), length);
      expect_error(ErrorCode::corrupt_file, "x.bin: ", [&] { read(cut); });
    }
  }
}

TEST(ZipArchive, EveryOffsetIsChecked) {
  const std::string good = make_zip(two_parts());
  const size_t directory = good.find("PK\x01\x02"), end = good.find("PK\x05\x06");
  const auto refused = [&](size_t at, uint32_t value, const std::string& message) {
    std::string file = good;
    overwrite(file, at, little_endian(value));
    expect_error(ErrorCode::corrupt_file, message, [&] { read(file); });
  };
  refused(end + 16, 0xfffffff0, "past the end");          // offset of the directory
  refused(end + 16, 3, "entry 1");                        // another place
  refused(end + 12, 0xfffffff0, "past the end");          // length of the directory
  refused(end + 12, 50, "entry 1");                       // too short
  refused(directory + 42, 0xfffffff0, "past the end");    // offset of the content
  refused(directory + 42, 5, "is not where");             // another place
  refused(directory + 20, 0x7fffffff, "is not as long");  // only one of the two sizes
}

TEST(ZipArchive, SizesAreChecked) {
  std::string file = make_zip(two_parts());
  const size_t directory = file.find("PK\x01\x02");
  overwrite(file, directory + 20, little_endian<uint32_t>(5000) + little_endian<uint32_t>(5000));
  expect_error(ErrorCode::corrupt_file, "past the end", [&] { read(file); });
}

TEST(ZipArchive, EveryZip64OffsetIsChecked) {
  const std::string good = make_zip(two_parts(), true);
  const size_t directory = good.find("PK\x01\x02"), extra = directory + 46 + 9 + 4;
  const size_t end = good.find("PK\x06\x06"), locator = good.find("PK\x06\x07");
  const auto refused = [&](size_t at, uint64_t value, const std::string& message) {
    std::string file = good;
    overwrite(file, at, little_endian(value));
    expect_error(ErrorCode::corrupt_file, message, [&] { read(file); });
  };
  const uint64_t huge = ~uint64_t{0};
  for (const uint64_t value : {huge, huge - 20, uint64_t{1} << 63}) {
    refused(locator + 8, value, "past the end");
    refused(end + 40, value, "past the end");
    refused(end + 48, value, "past the end");
    refused(end + 32, value, "entry 3");
    refused(extra + 16, value, "past the end");
  }
  refused(locator + 8, 0, "ZIP64 directory is not where");
}

TEST(ZipArchive, ShortZip64FieldsAreRefused) {
  std::string file = make_zip(two_parts(), true);
  const size_t extra = file.find("PK\x01\x02") + 46 + 9;
  std::string shorter = file;
  overwrite(shorter, extra + 2, little_endian<uint16_t>(20));
  expect_error(ErrorCode::corrupt_file, "ZIP64 field", [&] { read(shorter); });
  overwrite(file, extra + 2, little_endian<uint16_t>(2000));
  expect_error(ErrorCode::corrupt_file, "extra field", [&] { read(file); });
}

TEST(ZipArchive, NamesMustAgree) {
  std::string file = make_zip(two_parts());
  overwrite(file, file.find("archive/b"), "archive/c");
  expect_error(ErrorCode::corrupt_file, "'archive/b' has another name", [&] { read(file); });
}

}  // namespace
}  // namespace heed
