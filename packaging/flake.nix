{
  description = "Oscilloscope for speculative decoding of language models";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: {
        default = pkgs.stdenv.mkDerivation {
          pname = "specscope";
          version = builtins.elemAt (builtins.split "[()]" (builtins.readFile ../debian/changelog)) 2;
          src = ./..;
          nativeBuildInputs = [ pkgs.pkg-config ];
          buildInputs = with pkgs; [ cairo cjson curl fontconfig libcsv ncurses openblas pcre2 utf8proc ]
            ++ pkgs.lib.optional pkgs.stdenv.hostPlatform.isDarwin pkgs.llvmPackages.openmp;
          makeFlags = [ "PREFIX=$(out)" "NVCC=" "BLAS_LIBS=-lopenblas" ];
          enableParallelBuilding = true;
          doInstallCheck = true;
          installCheckPhase = ''
            $out/bin/specscope bench -n 8 --repeat 1 --policy layerskip
          '';
          meta = {
            license = with pkgs.lib.licenses; [ mit cc0 ];
            mainProgram = "specscope";
            platforms = systems;
          };
        };
      });
    };
}
