//go:build never

// Keeps in go.mod what only e2e.test needs: test binaries are no tools.
package conformance

import _ "k8s.io/kubernetes/test/e2e"
