// The version of the library, as in CHANGELOG.md. The middle number is increased when older models
// can no longer be loaded.
#pragma once

namespace heed {

// "0.1.0"
const char* version();

}  // namespace heed
