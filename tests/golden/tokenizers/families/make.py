#!/usr/bin/env python3
# make.py TEXT: writes families.json and pieces.json, small tokenizers of the kinds that models ship with.
# Then `node expected.js` writes expected.jsonl by Hugging Face's tokenizers (npm package `tokenizers`).
# The vocabularies are learnt from TEXT (tiny Shakespeare) in the simplest way: what counts is that the
# steps around them are real.
import json, collections, re, os, sys, math
text = open(sys.argv[1]).read()[:120000]
text += " naïve café résumé 東京は日本 привет мир 12345 don't I'VE can’t 🙂👍🏽 é ﬁne ½ ＦＵＬＬ Straße ".join([''] * 40)
models = {}
families = {}


def bytes_char():
    bs = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    cs = bs[:]
    n = 0
    for b in range(256):
        if b not in bs:
            bs.append(b)
            cs.append(256 + n)
            n += 1
    return {b: chr(c) for b, c in zip(bs, cs)}


BC = bytes_char()


def train_bpe(words, n, alphabet):
    words = {tuple(w): c for w, c in words.items()}
    merges = []
    vocab = list(alphabet)
    for _ in range(n):
        pairs = collections.Counter()
        for w, c in words.items():
            for a, b in zip(w, w[1:]):
                pairs[a, b] += c
        if not pairs:
            break
        (a, b), c = max(pairs.items(), key=lambda x: (x[1], x[0]))
        if c < 2:
            break
        merges.append((a, b))
        if a + b not in vocab:
            vocab.append(a + b)
        nw = {}
        for w, c in words.items():
            r = []
            i = 0
            while i < len(w):
                if i + 1 < len(w) and w[i] == a and (w[i + 1] == b):
                    r.append(a + b)
                    i += 2
                else:
                    r.append(w[i])
                    i += 1
            nw[tuple(r)] = nw.get(tuple(r), 0) + c
        words = nw
    return (vocab, merges)


ws = re.findall(' ?\\w+| ?[^\\w\\s]+|\\s+', text)
cnt = collections.Counter((''.join((BC[b] for b in w.encode())) for w in ws))
cnt = dict(cnt.most_common(3000))
bl_vocab, bl_merges = train_bpe(cnt, 250, sorted(BC.values()))


def tok(content, id, **k):
    d = dict(id=id, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    d.update(k)
    return d



def save(name, model, **k):
    key = None
    for other, m in models.items():
        if m['vocab'] == model['vocab'] and m.get('merges') == model.get('merges'):
            key = other
    if key is None:
        key = name
        models[key] = {p: model[p] for p in ('vocab', 'merges') if p in model}
    rest = {p: v for p, v in model.items() if p not in ('vocab', 'merges')}
    families[name] = dict(dict(added_tokens=[], normalizer=None, pre_tokenizer=None, post_processor=None, decoder=None), **k, model=rest, pieces=key)



def bpe(vocab, merges, pairs=False, **k):
    m = dict(type='BPE', dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False, byte_fallback=False, ignore_merges=False, vocab={v: i for i, v in enumerate(vocab)}, merges=[list(p) for p in merges] if pairs else [' '.join(p) for p in merges])
    m.update(k)
    return m



def sp(id, t=0):
    return {'SpecialToken': {'id': id, 'type_id': t}}



def sq(id, t=0):
    return {'Sequence': {'id': id, 'type_id': t}}


BL = lambda **k: dict(dict(type='ByteLevel', add_prefix_space=False, trim_offsets=True, use_regex=True), **k)
split = lambda r, b='Isolated', i=False: dict(type='Split', pattern={'Regex': r}, behavior=b, invert=i)
L3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
Q2 = L3.replace('\\p{N}{1,3}', '\\p{N}')
n = len(bl_vocab)
extra = bl_vocab + []
iv = bl_vocab + ['Ġquickest', 'fox', 'Ġ東京'.replace('東京', ''.join((BC[b] for b in '東京'.encode())))]
save(
    'llama3',
    added_tokens=[tok('<|begin_of_text|>', len(iv)), tok('<|end_of_text|>', len(iv) + 1), tok('<|eot_id|>', len(iv) + 2)],
    pre_tokenizer=dict(type='Sequence', pretokenizers=[split(L3), BL(use_regex=False)]),
    post_processor=dict(type='Sequence', processors=[BL(trim_offsets=False), dict(type='TemplateProcessing', single=[sp('<|begin_of_text|>'), sq('A')], pair=[sp('<|begin_of_text|>'), sq('A'), sp('<|begin_of_text|>', 1), sq('B', 1)], special_tokens={'<|begin_of_text|>': dict(id='<|begin_of_text|>', ids=[len(iv)], tokens=['<|begin_of_text|>'])})]),
    decoder=BL(),
    model=bpe(iv, bl_merges, True, ignore_merges=True))
save(
    'qwen2',
    added_tokens=[tok('<|endoftext|>', n), tok('<|im_start|>', n + 1), tok('<tool>', n + 2, special=False)],
    normalizer=dict(type='NFC'),
    pre_tokenizer=dict(type='Sequence', pretokenizers=[split(Q2), BL(use_regex=False)]),
    post_processor=BL(trim_offsets=False),
    decoder=BL(),
    model=bpe(bl_vocab, bl_merges))
rv = ['<s>', '<pad>', '</s>', '<unk>'] + bl_vocab + ['<mask>']
save(
    'roberta',
    added_tokens=[tok(t, rv.index(t)) for t in rv[:4]] + [tok('<mask>', len(rv) - 1, lstrip=True)],
    pre_tokenizer=BL(add_prefix_space=False),
    post_processor=dict(type='RobertaProcessing', sep=['</s>', 2], cls=['<s>', 0], trim_offsets=True, add_prefix_space=False),
    decoder=BL(),
    model=bpe(rv, bl_merges))
save(
    'roberta-prefix',
    added_tokens=[tok(t, rv.index(t)) for t in rv[:4]] + [tok('<mask>', len(rv) - 1, lstrip=True, normalized=True)],
    pre_tokenizer=BL(add_prefix_space=True),
    post_processor=dict(type='RobertaProcessing', sep=['</s>', 2], cls=['<s>', 0], trim_offsets=True, add_prefix_space=True),
    decoder=BL(),
    model=bpe(rv, bl_merges))
save(
    'bloom',
    added_tokens=[tok('</s>', n)],
    pre_tokenizer=dict(type='Sequence', pretokenizers=[split(' ?[^(\\s|[.,!?…。，、।۔،])]+'), BL(use_regex=False)]),
    post_processor=BL(trim_offsets=False),
    decoder=BL(),
    model=bpe(bl_vocab, bl_merges))
save(
    'neox',
    added_tokens=[tok('<|endoftext|>', n)] + [tok(' ' * k, n + 25 - k, special=False, normalized=True) for k in range(24, 1, -1)],
    normalizer=dict(type='NFC'),
    pre_tokenizer=BL(),
    post_processor=BL(),
    decoder=BL(),
    model=bpe(bl_vocab, bl_merges))
save(
    'bytelevel-normalizer',
    normalizer=dict(type='ByteLevel'),
    pre_tokenizer=split('Ġ?[a-z]+|\\d'),
    decoder=BL(),
    model=bpe(bl_vocab, bl_merges))
save(
    'deepseek',
    added_tokens=[tok('<｜begin▁of▁sentence｜>', n)],
    normalizer=dict(type='Sequence', normalizers=[]),
    pre_tokenizer=dict(type='Sequence', pretokenizers=[split('\\p{N}{1,3}'), split('[一-龥\u3040-ゟ゠-ヿ]+'), split('[!\\"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+'), BL(use_regex=False)]),
    decoder=BL(),
    model=bpe(bl_vocab, bl_merges))
save(
    'gpt4o',
    pre_tokenizer=dict(type='Sequence', pretokenizers=[split("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", 'Removed', True), BL(use_regex=False)]),
    decoder=BL(),
    model=bpe(bl_vocab, bl_merges))
save(
    'starcoder',
    pre_tokenizer=dict(type='Sequence', pretokenizers=[dict(type='Digits', individual_digits=True), BL()]),
    decoder=BL(),
    model=bpe(bl_vocab, bl_merges))
mt = text.replace(' ', '▁')
mw = collections.Counter(('▁' + w for w in text.split(' ') if not set(w) & set('東京é')))
mw = dict(mw.most_common(3000))
chars = sorted(set(''.join(mw)) - set('東京é'))
mv0 = ['<unk>', '<s>', '</s>'] + ['<0x%02X>' % b for b in range(256)]
mv, mm = train_bpe(mw, 200, chars)
mvocab = mv0 + [v for v in mv if v not in mv0]
dec = dict(type='Sequence', decoders=[dict(type='Replace', pattern={'String': '▁'}, content=' '), dict(type='ByteFallback'), dict(type='Fuse'), dict(type='Strip', content=' ', start=1, stop=0)])
tmpl = dict(type='TemplateProcessing', single=[sp('<s>'), sq('A')], pair=[sp('<s>'), sq('A'), sp('<s>', 1), sq('B', 1)], special_tokens={'<s>': dict(id='<s>', ids=[1], tokens=['<s>'])})
S3 = [tok('<unk>', 0), tok('<s>', 1), tok('</s>', 2)]
save(
    'llama2',
    added_tokens=S3,
    normalizer=dict(type='Sequence', normalizers=[dict(type='Prepend', prepend='▁'), dict(type='Replace', pattern={'String': ' '}, content='▁')]),
    post_processor=tmpl,
    decoder=dec,
    model=bpe(mvocab, mm, unk_token='<unk>', fuse_unk=True, byte_fallback=True))
save(
    'llama2-new',
    added_tokens=S3,
    pre_tokenizer=dict(type='Metaspace', replacement='▁', prepend_scheme='first', split=False),
    post_processor=tmpl,
    decoder=dec,
    model=bpe(mvocab, mm, True, unk_token='<unk>', fuse_unk=True, byte_fallback=True))
save(
    'metaspace-bpe-unk',
    added_tokens=S3,
    normalizer=dict(type='Strip', strip_left=True, strip_right=False),
    pre_tokenizer=dict(type='Metaspace', replacement='▁', prepend_scheme='first', split=True),
    decoder=dict(type='Metaspace', replacement='▁', prepend_scheme='first', split=True),
    model=bpe([v for v in mvocab if not v.startswith('<0x')], mm, unk_token='<unk>', fuse_unk=True))
save(
    'metaspace-bpe-nofuse',
    added_tokens=[tok('<unk>', 0), tok('▁ok', 1, special=False, normalized=True, single_word=True), tok('</s>', 2, rstrip=True, lstrip=True)],
    normalizer=dict(type='Lowercase'),
    pre_tokenizer=dict(type='Metaspace', replacement='▁', prepend_scheme='never', split=True),
    decoder=dict(type='Metaspace', replacement='▁', prepend_scheme='never', split=True),
    model=bpe(['<unk>', '▁ok', '</s>'] + [v for v in mvocab[259:]], mm, unk_token='<unk>'))
ow = collections.Counter(re.findall('\\w+|[^\\w\\s]+', text.lower()))
ow = dict(ow.most_common(2000))
ow2 = {tuple(list(w[:-1]) + [w[-1] + '</w>']): c for w, c in ow.items()}
al = sorted(set((x for w in ow2 for x in w)) | set(''.join(ow)))
ov, om = train_bpe(ow2, 120, al)
save(
    'oldbpe',
    normalizer=dict(type='BertNormalizer', clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
    pre_tokenizer=dict(type='BertPreTokenizer'),
    decoder=dict(type='BPEDecoder', suffix='</w>'),
    model=bpe(['<unk>'] + ov, om, unk_token='<unk>', end_of_word_suffix='</w>'))
wc = collections.Counter(re.findall('\\w+|[^\\w\\s]', text.lower()))
wv = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
al = sorted(set(''.join(wc)))
for c in al:
    wv += [c, '##' + c]
wv += [w for w, c in wc.most_common(250) if len(w) > 1] + ['##ing', '##ed', '##er', '##s', '##东', '##tion', '##ly', '##é']
wv = list(dict.fromkeys(wv))
wp = lambda v, **k: dict(dict(type='WordPiece', unk_token='[UNK]', continuing_subword_prefix='##', max_input_chars_per_word=100, vocab={x: i for i, x in enumerate(v)}), **k)
bt = dict(type='BertProcessing', sep=['[SEP]', 3], cls=['[CLS]', 2])
SB = [tok(t, i) for i, t in enumerate(wv[:5])]
for nm, nn in [('bert', dict(type='BertNormalizer', clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)), ('bert-cased', dict(type='BertNormalizer', clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=False)), ('bert-noclean', dict(type='BertNormalizer', clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)), ('bert-nfkc', dict(type='Sequence', normalizers=[dict(type='NFKC'), dict(type='Lowercase'), dict(type='Nmt'), dict(type='Replace', pattern={'Regex': ' {2,}'}, content=' ')])), ('bert-nfd', dict(type='Sequence', normalizers=[dict(type='NFD'), dict(type='Lowercase'), dict(type='StripAccents')])), ('bert-nfkd', dict(type='NFKD'))]:
    save(nm, added_tokens=SB, normalizer=nn, pre_tokenizer=dict(type='BertPreTokenizer'), post_processor=bt, decoder=dict(type='WordPiece', prefix='##', cleanup=True), model=wp(wv))
for nm, pp in [('wp-whitespace', dict(type='Whitespace')), ('wp-split', dict(type='Sequence', pretokenizers=[dict(type='WhitespaceSplit'), dict(type='Punctuation', behavior='MergedWithPrevious'), dict(type='Digits', individual_digits=False)])), ('wp-delim', dict(type='CharDelimiterSplit', delimiter='e')), ('wp-next', dict(type='Sequence', pretokenizers=[dict(type='Split', pattern={'String': ' '}, behavior='MergedWithNext', invert=False), dict(type='Punctuation', behavior='Contiguous')]))]:
    save(nm, added_tokens=SB, normalizer=dict(type='Lowercase'), pre_tokenizer=pp, post_processor=bt, decoder=dict(type='WordPiece', prefix='##', cleanup=False), model=wp(wv + [' ', '##'], max_input_chars_per_word=12))
base = [['<pad>', 0.0], ['</s>', 0.0], ['<unk>', 0.0]]
sc = collections.Counter()
for w in text.split():
    w = '▁' + w
    for i in range(len(w)):
        for j in range(i + 1, min(len(w), i + 6) + 1):
            sc[w[i:j]] += 1
tot = sum(sc.values())
un = base + [[p, round(math.log(c / tot), 4)] for p, c in sc.most_common(600)]
un = un[:3] + [x for x in un[3:] if x[0] not in ('é', '東')]
eos = dict(type='TemplateProcessing', single=[sq('A'), sp('</s>')], pair=[sq('A'), sp('</s>'), sq('B'), sp('</s>')], special_tokens={'</s>': dict(id='</s>', ids=[1], tokens=['</s>'])})
ms = dict(type='Metaspace', replacement='▁', prepend_scheme='always', split=True)
save(
    'xlmr',
    added_tokens=[tok('<pad>', 0), tok('</s>', 1), tok('<unk>', 2), tok('<mask>', len(un), lstrip=True)],
    normalizer=dict(type='Sequence', normalizers=[dict(type='Nmt'), dict(type='NFKC'), dict(type='Replace', pattern={'Regex': ' {2,}'}, content=' ')]),
    pre_tokenizer=ms,
    post_processor=eos,
    decoder=ms,
    model=dict(type='Unigram', unk_id=2, vocab=un))
save(
    'unigram-bytes',
    added_tokens=[tok('<unk>', 2)],
    normalizer=dict(type='NFKC'),
    pre_tokenizer=dict(type='Metaspace', replacement='▁', prepend_scheme='always', split=False),
    decoder=dict(type='Sequence', decoders=[dict(type='ByteFallback'), ms]),
    model=dict(type='Unigram', unk_id=2, vocab=un + [['<0x%02X>' % b, -20.0] for b in range(256)], byte_fallback=True))
save(
    'wordlevel',
    added_tokens=[tok('[UNK]', 0)],
    normalizer=dict(type='Lowercase'),
    pre_tokenizer=dict(type='Whitespace'),
    model=dict(type='WordLevel', unk_token='[UNK]', vocab={w: i for i, w in enumerate(['[UNK]'] + [w for w, c in wc.most_common(300)])}))


def write(name, value):
    with open(name, 'w') as f:
        f.write('{\n' + ',\n'.join((json.dumps(k) + ': ' + json.dumps(v, ensure_ascii=False, separators=(',', ':')) for k, v in value.items())) + '\n}\n')


write('pieces.json', models)
write('families.json', families)
