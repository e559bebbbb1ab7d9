// The tensors of a model folder, mapped and never copied.
//
//   const TensorFile file = TensorFile::open("models/gpt2");   // a folder, or one file in it
//   if (const TensorView* wte = file.find("transformer.wte.weight")) copy_as_f32(*wte, out);
//
// Files are untrusted: every length and offset is checked before use, and nothing in them is
// executed. A file that contradicts itself is Error(corrupt_file).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"

namespace heed {

enum class DType { f32, f16, bf16, f64, i64, i32, i16, i8, u8, boolean };

// "f32" and so on; "bool" for boolean, whose enumerator could not have that name.
const char* name(DType dtype);
DType dtype_from_name(std::string_view name);  // of a name in the code, such as a weight type's
size_t element_bytes(DType dtype);

// The product of a shape (1 for a scalar's empty shape), and its bytes. Nothing when an extent is
// negative or a product is too large for int64_t, also of the extents around a zero.
std::optional<int64_t> checked_element_count(std::span<const int64_t> shape);
std::optional<int64_t> checked_byte_count(std::span<const int64_t> shape, DType dtype);

// "[512, 64]", for messages.
std::string shape_text(std::span<const int64_t> shape);

// One tensor: rows after each other, at any alignment. Borrows its bytes.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;

  // Throws invalid_argument when the shape has no count; what a reader returned always has one.
  int64_t element_count() const;

  // Whether f32() can show the numbers where they are.
  bool is_aligned_f32() const;
  std::span<const float> f32() const;
};

// Writes element_count() floats. Reads f32, f16, bf16 and f64 (rounded to nearest); others are
// Error(unsupported), because integers and booleans are not weights.
void copy_as_f32(const TensorView& tensor, float* out);

// What is wrong with a tensor's name, or empty. Names end up in terminals and in JSON.
std::string name_problem(std::string_view name);

// What a reader finds in one file. The views point into the file's bytes or into `owned`.
struct TensorTable {
  std::vector<TensorView> tensors;              // in the file's order
  std::map<std::string, std::string> metadata;  // safetensors only
  std::vector<std::vector<std::byte>> owned =
      {};  // tensors that the file does not hold in one piece
};

// All tensors of a file or of a folder. Immutable, so safe to read from many threads; the views
// live as long as it does, also when it is moved.
class TensorFile {
 public:
  // `path` is a safetensors file, a pytorch_model.bin, or a folder with one of, in this order:
  // model.safetensors, model.safetensors.index.json and its shards, pytorch_model.bin,
  // pytorch_model.bin.index.json and its shards.
  static TensorFile open(const std::string& path);

  // A file that is in memory already; `where` names it in messages.
  static TensorFile from_bytes(std::vector<std::byte> image, const std::string& where);

  std::span<const TensorView> tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;

  // The files' "__metadata__"; where shards disagree, the first one's.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // The files that hold the tensors, without an index; none if they are in memory.
  std::vector<std::string> paths() const;

  // Releases the memory of what was read so far; see MappedFile::drop_pages().
  void drop_pages() const {
    for (const MappedFile& file : files_) file.drop_pages();
  }

 private:
  TensorFile() = default;
  static TensorFile open_file(const std::string& path);
  static TensorFile open_shards(const std::string& folder, const std::string& index_path);
  void add(TensorTable&& table);
  void sort_names(const std::string& where);

  std::vector<MappedFile> files_;
  std::vector<std::vector<std::byte>> owned_;
  std::vector<TensorView> tensors_;
  std::vector<size_t> by_name_;  // positions in tensors_, sorted by name
  std::map<std::string, std::string> metadata_;
};

}  // namespace heed
