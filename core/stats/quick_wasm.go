package stats

// speculate chooses addQuick over addPlain; both give the same bits. In
// WebAssembly the number of operations decides, and addPlain has fewer.
const speculate = false
