// A token and the keys of its issuer, of proxy/tenant/tests/tokens: the tenant is acme, the time from 1,700,000,000 to
// 2,000,000,000 seconds since 1970.
#ifndef TOKEN_H
#define TOKEN_H

static const char ISSUER_KEYS[] =
    "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"ed\",\"x\":\"I6UTvYIMNhbrE1uPhTGVCbbnocy_fRPt9pxYi"
    "W4wm3c\"}]}";

static const char BEARER[] =
    "Bearer eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImVkIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOlsid"
    "G9rZW5tZXRlciJdLCJleHAiOjIwMDAwMDAwMDAsIm5iZiI6MTcwMDAwMDAwMCwic3ViIjoiYW5uIiwidGVuYW50IjoiYWNtZSIsInJlYWxtI"
    "jp7InRlbmFudCI6eyJpZCI6ImRlZXAifSwibnVtYmVyIjo0Mn0sImh0dHBzOi8vZXhhbXBsZS5jb20vdGVuYW50Ijoic3BhY2VkIn0.baJk7"
    "0rfgd7HOoshrUcntiH5P_zc3dFxsF-91MCenFyB3y83Kuu2XWAqx8qdZ_q1d_08dcW8HxAAKKweNfALAQ";

#endif
