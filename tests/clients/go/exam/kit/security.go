package kit

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// TLS trusts the authority of the command; nil without one. What else is checked are the defaults of the language.
func (c *Command) TLS() *tls.Config {
	if c.TLSAuthority == "" {
		return nil
	}
	authorities := x509.NewCertPool()
	if pem, err := os.ReadFile(c.TLSAuthority); err == nil {
		authorities.AppendCertsFromPEM(pem)
	}
	return &tls.Config{RootCAs: authorities}
}
