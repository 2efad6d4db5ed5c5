package picture

import (
	"bytes"
	_ "embed" // the assets
	"fmt"
	"html"
	"io"
)

//go:embed assets/draw.js
var drawJS []byte

//go:embed assets/scatter.js
var scatterJS []byte

//go:embed assets/page.js
var pageJS []byte

//go:embed assets/page.css
var pageCSS []byte

// module joins the scripts to one: lines that import one of them are left out.
func module() []byte {
	var all []byte
	for _, script := range [][]byte{drawJS, scatterJS, pageJS} {
		for line := range bytes.Lines(script) {
			if !bytes.HasPrefix(line, []byte("import ")) {
				all = append(all, line...)
			}
		}
	}
	return all
}

// WriteHTML writes a document as a page that needs nothing else.
func (d *Document) WriteHTML(w io.Writer) error {
	data, err := d.json()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>%s</title>
<style>
%s</style>
</head>
<body>
<main id="page"></main>
<noscript>This page draws its figures with a script, which this browser does not run.</noscript>
<script type="application/json" id="document">%s</script>
<script type="module">
%s
show(JSON.parse(document.getElementById("document").textContent), document.getElementById("page"));
</script>
</body>
</html>
`, html.EscapeString(d.Title), pageCSS, data, module())
	return err
}
