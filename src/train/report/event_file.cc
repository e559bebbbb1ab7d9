#include "train/report/event_file.h"

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/files/mapped_file.h"
#include "heed/error.h"

namespace heed {
namespace {

// Protocol buffers: a field is its number and wire type, then the value.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
              kEventSessionLog = 7;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueSimple = 2, kSessionStatus = 1;
constexpr uint64_t kSessionStart = 1;

void put_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}
void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}
template <class T>
void put_fixed(std::string& out, T bits) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(bits >> (8 * i)));
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_head(int64_t step) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string event;
  put_key(event, kEventWallTime, Wire::fixed64);
  put_fixed(event, std::bit_cast<uint64_t>(now));
  put_key(event, kEventStep, Wire::varint);
  put_varint(event, static_cast<uint64_t>(step));
  return event;
}

std::string new_path(const std::string& folder) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  const std::string stem = folder + "/events.out.tfevents." + std::to_string(seconds) + ".heed";
  std::string path = stem;
  for (int n = 1; std::filesystem::exists(path); ++n) path = stem + "." + std::to_string(n);
  return path;
}

// Reads fields one by one; every length is checked.
class Reader {
 public:
  Reader(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  bool done() const { return bytes_.empty(); }
  template <class T>
  T fixed() {
    const std::string_view raw = take(sizeof(T));
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<T>(static_cast<unsigned char>(raw[i])) << (8 * i);
    }
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    fail("a varint must have at most 10 bytes");
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size()) fail("truncated record");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  // Calls visit(field, reader of a bytes field's content or nothing); numbers are left to it.
  template <class Visit>
  void fields(const Visit& visit) {
    while (!done()) {
      const uint64_t key = varint();
      const auto wire = static_cast<Wire>(key & 7);
      if (visit(static_cast<int>(key >> 3), *this)) continue;
      switch (wire) {
        case Wire::varint:
          varint();
          break;
        case Wire::fixed64:
          take(8);
          break;
        case Wire::fixed32:
          take(4);
          break;
        case Wire::bytes:
          take(varint());
          break;
        default:
          fail("unknown wire type");
      }
    }
  }
  [[noreturn]] void fail(const char* why) const {
    throw Error(ErrorCode::corrupt_file, where_ + ": " + why, "remove the file");
  }

 private:
  std::string_view bytes_;
  const std::string& where_;
};

}  // namespace

// Debian 12 has no package with CRC-32C (libcrc32c is not in it; zlib's polynomial differs), and a few
// records per second need no faster one.
uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    constexpr uint32_t kPolynomial = 0x82F63B78;  // Castagnoli's, reflected
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
      table[i] = crc;
    }
    return table;
  }();
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes)
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;  // tensorflow/core/lib/hash/crc32c.h
}

EventFile::EventFile(const std::string& folder, int64_t first_step) : path_(new_path(folder)) {
  std::error_code failed;  // then opening the file fails too
  std::filesystem::create_directories(folder, failed);
  file_.reset(std::fopen(path_.c_str(), "wb"));
  if (!file_) {
    throw Error(ErrorCode::invalid_argument, path_ + ": " + std::generic_category().message(errno),
                "choose a folder that can be written");
  }
  std::string version = event_head(0);
  put_bytes(version, kEventFileVersion, "brain.Event:2");
  write(version);
  if (first_step <= 0) return;
  std::string status;
  put_key(status, kSessionStatus, Wire::varint);
  put_varint(status, kSessionStart);
  std::string start = event_head(first_step);
  put_bytes(start, kEventSessionLog, status);
  write(start);
}

bool EventFile::write(std::string_view event) {
  std::string length, record;
  put_fixed(length, uint64_t{event.size()});
  record = length;
  put_fixed(record, masked_crc32c(length));
  record += event;
  put_fixed(record, masked_crc32c(event));
  return std::fwrite(record.data(), 1, record.size(), file_.get()) == record.size() &&
         std::fflush(file_.get()) == 0;
}

bool EventFile::scalar(std::string_view tag, int64_t step, double number) {
  std::string value, summary, event = event_head(step);
  put_bytes(value, kValueTag, tag);
  put_key(value, kValueSimple, Wire::fixed32);
  put_fixed(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
  put_bytes(summary, kSummaryValue, value);
  put_bytes(event, kEventSummary, summary);
  return write(event);
}

std::vector<EventScalar> read_event_scalars(const std::string& path) {
  const MappedFile file(path);
  Reader records({reinterpret_cast<const char*>(file.bytes().data()), file.size()}, path);
  std::vector<EventScalar> scalars;
  while (!records.done()) {
    const std::string_view length = records.take(8);
    if (records.fixed<uint32_t>() != masked_crc32c(length))
      records.fail("wrong checksum of a length");
    const std::string_view event = records.take(Reader(length, path).fixed<uint64_t>());
    if (records.fixed<uint32_t>() != masked_crc32c(event))
      records.fail("wrong checksum of a record");
    EventScalar scalar;
    bool has_value = false;
    Reader(event, path).fields([&](int field, Reader& r) {
      if (field == kEventStep) return scalar.step = static_cast<int64_t>(r.varint()), true;
      if (field != kEventSummary) return false;
      Reader(r.take(r.varint()), path).fields([&](int f, Reader& summary) {
        if (f != kSummaryValue) return false;
        Reader(summary.take(summary.varint()), path).fields([&](int g, Reader& value) {
          if (g == kValueTag) return scalar.tag = value.take(value.varint()), true;
          if (g != kValueSimple) return false;
          scalar.value = std::bit_cast<float>(value.fixed<uint32_t>());
          return has_value = true;
        });
        return true;
      });
      return true;
    });
    if (has_value) scalars.push_back(scalar);
  }
  return scalars;
}

}  // namespace heed
