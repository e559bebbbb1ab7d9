// node expected.js: writes expected.jsonl, what Hugging Face's tokenizers (npm package `tokenizers`,
// 0.23) make of the texts in texts.json with each of families.json.
const fs = require('fs');
const {Tokenizer} = require('tokenizers');

async function main() {
  const read = (name) => JSON.parse(fs.readFileSync(name));
  const families = read('families.json'), pieces = read('pieces.json'), texts = read('texts.json');
  const lines = [];
  for (const [family, {pieces: key, model, ...rest}] of Object.entries(families)) {
    const document = {version: '1.0', truncation: null, padding: null, ...rest,
                      model: {...model, ...pieces[key]}};
    const tokenizer = Tokenizer.fromString(JSON.stringify(document));
    for (const [index, text] of texts.entries()) {
      const ids = (await tokenizer.encode(text, null, {addSpecialTokens: true})).getIds();
      const plain = (await tokenizer.encode(text, null, {addSpecialTokens: false})).getIds();
      const decoded = await tokenizer.decode(ids, true);
      lines.push(JSON.stringify({family, text: index, ids, plain, decoded}));
    }
    const pair = await tokenizer.encode('Hello there', 'my friend');
    lines.push(JSON.stringify({family, pair: pair.getIds(), types: pair.getTypeIds()}));
  }
  fs.writeFileSync('expected.jsonl', lines.join('\n') + '\n');
}
main();
