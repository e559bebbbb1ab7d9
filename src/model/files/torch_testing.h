// Makes ZIP archives and pickles as torch.save does, and such as it never would; for tests and for
// the seeds of fuzzing only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

template <class T>
std::string little_endian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

struct ZipPart {
  std::string name, content;
  uint16_t method = 0, flags = 0;
  std::string extra = {};  // of the local header; PyTorch fills it up to align the content
};

// The archive of `parts`; with `zip64`, all numbers that can be are in the ZIP64 records.
inline std::string make_zip(const std::vector<ZipPart>& parts, bool zip64 = false,
                            const std::string& comment = "") {
  std::string file, directory;
  for (const ZipPart& part : parts) {
    const auto size = static_cast<uint32_t>(part.content.size());
    const uint64_t offset = file.size();
    const std::string common = little_endian<uint16_t>(part.flags) +
                               little_endian<uint16_t>(part.method) + std::string(8, '\0');
    const std::string name_size = little_endian(static_cast<uint16_t>(part.name.size()));
    file += "PK\x03\x04" + little_endian<uint16_t>(45) + common + std::string(8, '\0') + name_size +
            little_endian(static_cast<uint16_t>(part.extra.size())) + part.name + part.extra +
            part.content;
    const std::string extra = zip64 ? little_endian<uint16_t>(1) + little_endian<uint16_t>(24) +
                                          little_endian<uint64_t>(size) +
                                          little_endian<uint64_t>(size) +
                                          little_endian<uint64_t>(offset)
                                    : "";
    const std::string size32 = little_endian(zip64 ? 0xffffffff : size);
    directory += "PK\x01\x02" + little_endian<uint16_t>(45) + little_endian<uint16_t>(45) + common +
                 size32 + size32 + name_size + little_endian(static_cast<uint16_t>(extra.size())) +
                 std::string(10, '\0') +
                 little_endian(zip64 ? 0xffffffff : static_cast<uint32_t>(offset)) + part.name +
                 extra;
  }
  const uint64_t start = file.size(), end = start + directory.size();
  file += directory;
  if (zip64) {
    const uint64_t count = parts.size();
    file += "PK\x06\x06" + little_endian<uint64_t>(44) + little_endian<uint32_t>(0) +
            little_endian<uint64_t>(0) + little_endian(count) + little_endian(count) +
            little_endian<uint64_t>(directory.size()) + little_endian(start);
    file +=
        "PK\x06\x07" + little_endian<uint32_t>(0) + little_endian(end) + little_endian<uint32_t>(1);
  }
  const std::string count =
      little_endian(zip64 ? uint16_t{0xffff} : static_cast<uint16_t>(parts.size()));
  return file + "PK\x05\x06" + little_endian<uint32_t>(0) + count + count +
         little_endian(zip64 ? 0xffffffff : static_cast<uint32_t>(directory.size())) +
         little_endian(zip64 ? 0xffffffff : static_cast<uint32_t>(start)) +
         little_endian(static_cast<uint16_t>(comment.size())) + comment;
}

// Pieces of a pickle.
namespace pickled {

inline std::string program(const std::string& value) { return "\x80\x02" + value + "."; }
inline std::string instruction(std::string opcode, const std::string& operand) {
  return opcode.append(operand);
}
inline std::string text(std::string_view content) {
  return instruction("X", little_endian(static_cast<uint32_t>(content.size()))).append(content);
}
inline std::string integer(int64_t value) {
  if (value >= 0 && value < 256)
    return instruction("K", little_endian(static_cast<uint8_t>(value)));
  if (value == static_cast<int32_t>(value))
    return instruction("J", little_endian(static_cast<int32_t>(value)));
  return instruction("\x8a\x08", little_endian(value));
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<std::string>& items) {
  std::string all = "(";
  for (const std::string& item : items) all += item;
  return all + "t";
}
inline std::string call(const std::string& function, const std::vector<std::string>& arguments) {
  return function + tuple(arguments) + "R";
}
inline std::string extents(const std::vector<int64_t>& values) {
  std::vector<std::string> items;
  for (const int64_t value : values) items.push_back(integer(value));
  return tuple(items);
}
inline std::string storage(const std::string& type, const std::string& key, int64_t elements) {
  return tuple(
             {text("storage"), global("torch", type), text(key), text("cpu"), integer(elements)}) +
         "Q";
}
inline std::string ordered_dict() { return global("collections", "OrderedDict") + ")R"; }
inline std::string tensor(const std::string& storage, int64_t offset,
                          const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {storage, integer(offset), extents(shape), extents(strides), "\x89", ordered_dict()});
}
inline std::string parameter(const std::string& tensor) {
  return call(global("torch._utils", "_rebuild_parameter"), {tensor, "\x88", ordered_dict()});
}
// An OrderedDict with the attribute that state_dict() gives it. `items`: key, value, key, value …
inline std::string state_dict(const std::vector<std::string>& items) {
  std::string all = ordered_dict() + "(";
  for (const std::string& item : items) all += item;
  return all + "u}" + text("_metadata") + ordered_dict() + "sb";
}

}  // namespace pickled

// A pytorch_model.bin with the given pickle, and the given storages "0", "1" …
inline std::string make_torch_file(const std::string& pickle,
                                   const std::vector<std::string>& storages, bool zip64 = false) {
  std::vector<ZipPart> parts = {{.name = "archive/data.pkl", .content = pickle}};
  for (size_t i = 0; i < storages.size(); ++i)
    parts.push_back({.name = "archive/data/" + std::to_string(i), .content = storages[i]});
  parts.push_back({.name = "archive/byteorder", .content = "little"});
  parts.push_back({.name = "archive/version", .content = "3\n"});
  return make_zip(parts, zip64);
}

}  // namespace heed
