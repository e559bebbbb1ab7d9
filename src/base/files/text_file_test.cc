#include "base/files/text_file.h"

#include <zlib.h>
#include <zstd.h>

#include <string>
#include <vector>

#include "base/files/file_testing.h"

namespace heed {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::vector<std::string> lines_of(LineReader reader) {
  std::vector<std::string> lines;
  std::string line;
  while (reader.next(line)) {
    lines.push_back(line);
    EXPECT_EQ(reader.line_number(), static_cast<int64_t>(lines.size()));
  }
  return lines;
}

// Larger than any buffer, and not compressible to a few bytes.
std::vector<std::string> many_lines() {
  std::vector<std::string> lines;
  uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    lines.push_back(std::string(state >> 58, 'x') + std::to_string(state));
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class LineReaderTest : public FolderTest {};

TEST_F(LineReaderTest, AcceptsBothLineEndings) {
  using Lines = std::vector<std::string>;
  const auto lines = [this](std::string_view text) {
    return lines_of(LineReader(write("x", text)));
  };
  EXPECT_EQ(lines(""), Lines{});
  EXPECT_EQ(lines("\n"), Lines{""});
  EXPECT_EQ(lines("a\n\nb"), (Lines{"a", "", "b"}));
  EXPECT_EQ(lines("a\r\nb\r"), (Lines{"a", "b\r"}));
  EXPECT_EQ(lines("\xef\xbb\xbf"
                  "a\n\xef\xbb\xbf"),
            (Lines{"a", "\xef\xbb\xbf"}));
  EXPECT_EQ(lines(std::string_view("a\0b\n\xff", 5)), (Lines{std::string("a\0b", 3), "\xff"}));
}

TEST_F(LineReaderTest, ReadsPlainAndCompressedFilesAlike) {
  const std::vector<std::string> lines = many_lines();
  const std::string text = joined(lines);
  EXPECT_EQ(lines_of(LineReader(write("plain", text))), lines);
  EXPECT_EQ(lines_of(LineReader(write("a.gz", gzip(text)))), lines);
  EXPECT_EQ(lines_of(LineReader(write("a.zst", zstd(text)))), lines);
  EXPECT_EQ(lines_of(LineReader(write("gz-without-its-name", gzip(text)))), lines);
}

TEST_F(LineReaderTest, ReadsConcatenatedCompressedFiles) {
  const std::vector<std::string> expected = {"one", "two", "three"};
  EXPECT_EQ(lines_of(LineReader(write("a.gz", gzip("one\nt") + gzip("") + gzip("wo\nthree")))),
            expected);
  EXPECT_EQ(lines_of(LineReader(write("a.zst", zstd("one\nt") + zstd("") + zstd("wo\nthree")))),
            expected);
}

TEST_F(LineReaderTest, RejectsDamagedData) {
  const std::string text = joined(many_lines());
  for (const std::string& packed : {gzip(text), zstd(text)}) {
    for (const size_t length : {packed.size() - 1, packed.size() / 2, size_t{12}}) {
      const std::string path = write("short", packed.substr(0, length));
      expect_error(ErrorCode::corrupt_file, "short: damaged", [&] { lines_of(LineReader(path)); });
    }
  }
  // gzip has a checksum.
  std::string changed = gzip(text);
  changed[changed.size() - 6] ^= 1;
  const std::string path = write("changed", changed);
  expect_error(ErrorCode::corrupt_file, "changed: damaged", [&] { lines_of(LineReader(path)); });
}

TEST_F(LineReaderTest, ReportsFilesThatCannotBeOpened) {
  expect_error(ErrorCode::not_found, "nothing.txt",
               [&] { LineReader reader(path("nothing.txt")); });
  expect_error(ErrorCode::invalid_argument, "is a folder", [&] { LineReader reader(folder_); });
}

TEST_F(LineReaderTest, LimitsTheLengthOfALine) {
  const std::string path = write("x", "short\n" + std::string(1000, 'a') + "\n");
  EXPECT_EQ(lines_of(LineReader(path, 1000)).size(), 2u);
  expect_error(ErrorCode::invalid_argument, "x:2: a line must not exceed 999 bytes",
               [&] { lines_of(LineReader(path, 999)); });
  // Detected while reading, before the whole line is in memory.
  const std::string bomb = write("bomb.gz", gzip(std::string(10'000'000, '\0')));
  expect_error(ErrorCode::invalid_argument, "bomb.gz:1",
               [&] { lines_of(LineReader(bomb, 1'000'000)); });
}

TEST_F(LineReaderTest, ReportsProgress) {
  const std::string text = joined(many_lines());
  LineReader reader(write("x", text));
  EXPECT_EQ(reader.file_bytes(), static_cast<int64_t>(text.size()));
  EXPECT_EQ(reader.where(), path("x") + ":0");
  std::string line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(reader.where(), path("x") + ":1");
  EXPECT_LT(reader.bytes_read(), reader.file_bytes());
  while (reader.next(line)) {
  }
  EXPECT_EQ(reader.bytes_read(), reader.file_bytes());
}

}  // namespace
}  // namespace heed
