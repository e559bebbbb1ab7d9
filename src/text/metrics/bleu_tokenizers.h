// sacreBLEU's tokenizers for BLEU: from a text to tokens separated by spaces.
#pragma once

#include <string>
#include <string_view>

namespace heed {

using BleuTokenizer = std::string (*)(std::string_view text);

// By its name in the signature: 13a, intl, zh, char, none. Throws invalid_argument for others.
BleuTokenizer find_bleu_tokenizer(const std::string& name);

// mteval-v13a's rules for western text: splits off punctuation, except points and commas in numbers.
// The last step of 13a and zh, and part of TER's normalization.
std::string split_western_punctuation(std::string_view text);
// Its two parts, for TER, which has a step between them.
std::string split_ascii_symbols(std::string_view text);
std::string split_points_and_dashes(std::string_view text);

// Unescapes &quot; &amp; &lt; &gt;.
void undo_xml_escapes(std::string& text);

}  // namespace heed
