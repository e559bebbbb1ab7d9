// The version of the library, as in CHANGELOG.md. The middle digit moves when old models stop
// loading.
#pragma once

namespace heed {

// "0.1.0"
const char* version();

}  // namespace heed
