// Checks of --out, so that a typing error does not overwrite files.
#pragma once

#include <string>

namespace heed::cli {

// Before anything that takes long: whether the folder may be written. Throws invalid_argument for
// the folder of the model that is read (empty: none), for what is no folder or cannot be written,
// and for one that is not empty unless it is `replaceable`. What this does not say the writing
// itself will.
void check_out_folder(const std::string& model, const std::string& out, bool replaceable);

}  // namespace heed::cli
