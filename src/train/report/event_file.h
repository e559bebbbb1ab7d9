// TensorBoard's event files: scalars by step, readable by any tool that reads tfevents.
//
//   EventFile events("run/events", resumed_step);
//   events.scalar("loss", step, loss);
//
// A file is a list of TFRecords (length, checksum, bytes, checksum), each with one Event message of
// TensorFlow's event.proto. Scalars need four of its fields.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// CRC-32C (Castagnoli), and TensorFlow's mask of it.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

class EventFile {
 public:
  // Opens a new file in `folder`, which is created if it is missing. TensorBoard then ignores what
  // earlier, interrupted files have for `first_step` and later ones.
  EventFile(const std::string& folder, int64_t first_step);

  // Flushed at once, so a killed run loses nothing. A failed write only returns false: training does
  // not stop for it.
  bool scalar(std::string_view tag, int64_t step, double value);

  const std::string& path() const { return path_; }

 private:
  bool write(std::string_view event);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

struct EventScalar {
  std::string tag;
  int64_t step = 0;
  float value = 0;
};
// Reads the scalars back. Throws corrupt_file if a checksum or a length is wrong.
std::vector<EventScalar> read_event_scalars(const std::string& path);

}  // namespace heed
