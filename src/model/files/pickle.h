// A pickle read as inert data. Python's pickles are programs: they name functions and call them.
// Here a call only becomes a value (this name, with these arguments), and a name that the caller does
// not expect is an error. Nothing is executed or imported.
//
// Supports the opcodes that torch.save uses for a dictionary of tensors (protocol 2). Time and
// memory are bounded by a multiple of the pickle's length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace heed {

struct PickleNone {};

// A Python object by its name: "torch._utils._rebuild_tensor_v2".
struct PickleGlobal {
  std::string_view module, name;
};

// A number in Pickle::object().
struct PickleReference {
  uint32_t index = 0;
};

using PickleValue = std::variant<PickleNone, bool, int64_t, double, std::string_view, PickleGlobal,
                                 PickleReference>;

struct PickleObject {
  enum class Kind { tuple, list, dict, call, persistent };
  Kind kind = Kind::tuple;
  // tuple, list: the elements. dict: key, value, key, value … call: the same, as set on the result.
  // persistent: the id, by which torch.save means a storage.
  std::vector<PickleValue> items = {};
  PickleGlobal function = {};      // call: what would be called,
  PickleReference arguments = {};  // and the tuple of what it would be called with
};

class Pickle {
 public:
  // `globals` lists what may be named, as "module name". Borrows `bytes`: texts point into it.
  // Throws unsupported for another name or opcode, corrupt_file for an invalid pickle.
  Pickle(std::span<const std::byte> bytes, std::span<const std::string_view> globals,
         const std::string& where);

  const PickleValue& root() const { return root_; }
  const PickleObject& object(PickleReference reference) const { return objects_[reference.index]; }
  // The object that a value refers to, or null.
  const PickleObject* object(const PickleValue& value) const {
    const auto* reference = std::get_if<PickleReference>(&value);
    return reference == nullptr ? nullptr : &object(*reference);
  }

 private:
  std::vector<PickleObject> objects_;
  PickleValue root_;
};

}  // namespace heed
