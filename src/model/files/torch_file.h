// pytorch_model.bin, as torch.save writes a dictionary of tensors: a ZIP archive with
//
//   NAME/data.pkl     the dictionary, a pickle; read as inert data, see model/files/pickle.h
//   NAME/data/0 …     the storages that its tensors are views of
//   NAME/byteorder    "little", in files since PyTorch 2.1
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "model/files/tensor_file.h"

namespace heed {

// The tensors of the dictionary, in its order. They borrow `file`, but those that are not
// contiguous (a transposed view, say) are copied into the table. `where` names the file in
// messages.
TensorTable read_torch_file(std::span<const std::byte> file, const std::string& where);

}  // namespace heed
