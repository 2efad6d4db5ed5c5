package blake3

import (
	"encoding/hex"
	"testing"
)

// Inputs of bytes 0, 1, ..., 250, 0, ... of many lengths, around the ends of
// blocks, chunks and subtrees, as another implementation hashes them; the
// first is also the published hash of nothing.
func TestLengths(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{
		{0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
		{1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
		{3, "e1be4d7a8ab5560aa4199eea339849ba8e293d55ca0a81006726d184519e647f"},
		{63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b"},
		{64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
		{65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
		{127, "d81293fda863f008c09e92fc382a81f5a0b4a1251cba1634016a0f86a6bd640d"},
		{1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
		{1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
		{1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
		{2047, "58830fbf51a4423c573b164471690570e544cfe793bead46225664796b4b1467"},
		{2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
		{2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
		{3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2"},
		{3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3"},
		{4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969"},
		{4097, "9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995"},
		{5120, "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833"},
		{6144, "3e2e5b74e048f3add6d21faab3f83aa44d3b2278afb83b80b3c35164ebeca205"},
		{7168, "61da957ec2499a95d6b8023e2b0e604ec7f6b50e80a9678b89d2628e99ada77a"},
		{8192, "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63"},
		{8193, "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b"},
		{16384, "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4"},
		{31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
		{102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
		{100001, "3e08024a440dfe39cf6f35f46a8c49837834e55b4ccd2f9a76da1a09f8863d4e"},
	} {
		input := make([]byte, c.n)
		for i := range input {
			input[i] = byte(i % 251)
		}
		sum := Sum256(input)
		if got := hex.EncodeToString(sum[:]); got != c.want {
			t.Errorf("%d bytes: %s, want %s", c.n, got, c.want)
		}
		// In pieces, with a look now and then.
		var h Hasher
		for i, size := 0, 1; i < len(input); size = size*7%1500 + 1 {
			end := min(i+size, len(input))
			h.Write(input[i:end])
			i = end
			if size%3 == 0 && h.Sum() != Sum256(input[:i]) {
				t.Fatalf("the first %d of %d bytes", i, c.n)
			}
		}
		if h.Sum() != sum {
			t.Errorf("%d bytes in pieces", c.n)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	input := make([]byte, 5000)
	if n := testing.AllocsPerRun(10, func() {
		var h Hasher
		h.Write(input)
		h.Sum()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkWrite(b *testing.B) {
	input := make([]byte, 1<<20)
	b.SetBytes(int64(len(input)))
	var h Hasher
	for b.Loop() {
		h.Write(input)
	}
}
