// Numbers as text, for messages, tables and drawings.
#pragma once

#include <cstdint>
#include <string>

namespace heed {

// `digits` significant digits, as printf's %g: "0.0003", "1.5e-05", "1235".
std::string significant(double value, int digits = 4);
// "3.50": always so many decimals.
std::string fixed(double value, int decimals);
// The shortest text that reads back as the same number.
std::string shortest(double value);
std::string shortest(float value);

// "12.3 MB", from 100 MB on "123 MB". Decimal megabytes; the decimal lets small amounts add up.
std::string megabytes(int64_t bytes);

}  // namespace heed
