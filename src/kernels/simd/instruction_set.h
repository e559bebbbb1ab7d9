// Which instruction set the kernels run on.
#pragma once

#include <string>

namespace heed::kernels {

// The name, as Highway spells it, of the instruction set chosen for this CPU: "AVX2", "AVX3"
// (which is AVX-512), "SSE4", "NEON" …
std::string instruction_set();

}  // namespace heed::kernels
